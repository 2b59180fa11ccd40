package mcpkit

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// slow is a researcher that goes on until it is told to stop or to answer.
type slow struct {
	began   chan marchwarden.TraceID
	answer  chan struct{}
	stopped chan time.Time
}

func newSlow() slow {
	return slow{make(chan marchwarden.TraceID, 1), make(chan struct{}), make(chan time.Time, 1)}
}

func (s slow) Research(ctx context.Context, _ marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	id, _ := marchwarden.ChosenTraceID(ctx)
	s.began <- id
	if sink != nil {
		sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "looking"})
	}
	res := sample("The whole answer [1]")
	select {
	case <-s.answer:
	case <-ctx.Done():
		s.stopped <- time.Now()
		res = sample("What there was [1]")
	}
	res.TraceID = id
	return res, nil
}

// caught is a call over the wire, whose stream can be cut.
type caught struct {
	cut   context.CancelFunc
	lines chan string // closed at the end
}

// catch makes a call and gives its lines as they come.
func catch(t *testing.T, req *http.Request, cut context.CancelFunc) *caught {
	t.Helper()
	link := &http.Transport{}
	c := &caught{cut: cut, lines: make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.lines)
		resp, err := (&http.Client{Transport: link}).Do(req)
		for err == nil && resp.StatusCode == http.StatusConflict { // the stream before is not known to be broken yet
			resp.Body.Close()
			time.Sleep(10 * time.Millisecond)
			resp, err = (&http.Client{Transport: link}).Do(req)
		}
		if err != nil {
			return // it was cut before an answer began
		}
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			c.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		cut()
		<-done
		link.CloseIdleConnections()
	})
	return c
}

// last waits for the end of a call and gives the last line that begins with a prefix.
func (c *caught) last(prefix string) (found string) {
	for line := range c.lines {
		if strings.HasPrefix(line, prefix) {
			found = line
		}
	}
	return found
}

func isOver(ctx context.Context, s *Server, id marchwarden.TraceID) bool {
	run, err := s.runs.Find(ctx, id)
	if err != nil {
		return false
	}
	select {
	case <-run.Done():
		return true
	default:
		return false
	}
}

// TestClientGone cuts the connection of a call. By the later protocol that stops the work
// at once, by the earlier one when the client has not come back in time; what there was
// can be read. A client that comes back gets its answer, and one that goes once more is
// gone.
func TestClientGone(t *testing.T) {
	const window = 400 * time.Millisecond
	alice := access.With(t.Context(), access.Principal{ID: "token:alice", Scopes: access.Scopes()})
	for _, how := range []string{"modern", "legacy", "returns", "returns and goes"} {
		t.Run(how, func(t *testing.T) {
			r := newSlow()
			s, _ := newTestServer(t, r)
			s.lines.patience = window
			url := listen(t, s, 0)
			era, session := modernEra, ""
			if how != "modern" {
				era, session = legacyEra, hello(t, http.DefaultClient, url)
				defer http.DefaultClient.CloseIdleConnections()
			}
			ctx, cut := context.WithCancel(t.Context())
			params := asking("Where does it end?")
			params["progressToken"] = "p"
			req, err := post(ctx, url, era, session, "tools/call", params)
			if err != nil {
				t.Fatal(err)
			}
			call := catch(t, req, cut)
			id := <-r.began
			event := ""
			for line := range call.lines {
				if strings.HasPrefix(line, "id: ") {
					event = strings.TrimPrefix(line, "id: ")
				}
				if strings.Contains(line, "looking") {
					break
				}
			}
			went := time.Now()
			cut()
			if strings.HasPrefix(how, "returns") {
				back := comeBack(t, url, session, event)
				time.Sleep(2 * window)
				if isOver(alice, s, id) {
					t.Fatal("it was stopped though its client had come back")
				}
				if how == "returns" {
					close(r.answer)
					if got := back.last("data: "); !strings.Contains(got, "The whole answer") {
						t.Errorf("who came back got %q", got)
					}
					return
				}
				went = time.Now()
				back.cut()
			}
			var at time.Time
			select {
			case at = <-r.stopped:
			case <-time.After(20 * window):
				t.Fatal("it was not stopped")
			}
			if took := at.Sub(went); how != "modern" && took < window/2 {
				t.Errorf("stopped after %v, and its client had %v to come back", took, window)
			}
			settles(t, "the run ends", func() bool { return isOver(alice, s, id) })
			res, err := s.resultOf(alice, id)
			if err != nil || !strings.Contains(res.Answer, "What there was") {
				t.Errorf("%v: the result is %+v", err, res)
			}
			t.Logf("stopped %v after its client had gone", at.Sub(went).Round(time.Millisecond))
		})
	}
}

// A client may be back before the server has begun to wait for it; one that goes again has time once more.
func TestBackBeforeItIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines()
		back := func() (went func()) {
			r := httptest.NewRequest(http.MethodGet, "/mcp", nil).WithContext(t.Context())
			r.Header.Set("Mcp-Session-Id", "s")
			r.Header.Set("Last-Event-ID", "1_1")
			return l.came(r)
		}
		missed := func(ctx context.Context) time.Duration {
			began := time.Now()
			l.missed(ctx, "s")
			return time.Since(began)
		}
		if took := missed(t.Context()); took != l.patience {
			t.Errorf("no client came, and it was missed after %v", took)
		}
		went := back()
		limited, cancel := context.WithTimeout(t.Context(), 5*l.patience)
		defer cancel()
		if took := missed(limited); took != 5*l.patience {
			t.Errorf("it was there, and was missed after %v", took)
		}
		time.AfterFunc(6*l.patience/5, went)
		if took := missed(t.Context()); took != 2*l.patience {
			t.Errorf("it went, and was missed after %v", took)
		}
		if len(l.back) > 0 {
			t.Errorf("%v are left", l.back)
		}
	})
}

// comeBack asks for the rest of a stream.
func comeBack(t *testing.T, url, session, event string) *caught {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("Mcp-Protocol-Version", legacyEra)
	req.Header.Set("Last-Event-ID", event)
	return catch(t, req, cut)
}
