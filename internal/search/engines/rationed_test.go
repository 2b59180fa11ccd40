package engines

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// share notes what is asked of it.
type share struct {
	err error

	mu          sync.Mutex // guards what follows
	taken, used int
	slow        []time.Duration
}

func (s *share) Take(_ context.Context, n int) (func(used int), error) {
	if s.err != nil {
		return nil, s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += n
	return func(used int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used += used
	}, nil
}

func (s *share) Limited() bool { return true }

func (s *share) Slow(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = append(s.slow, until.Sub(noon))
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// engine asks its service as often as the query has words.
type fake struct{ service httpapi.Service }

func (f *fake) Name() string { return "fake" }

func (f *fake) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	for _, w := range strings.Fields(q.Text) {
		var into any
		if err := f.service.GetJSON(ctx, w, nil, &into); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func TestEveryRequestCounts(t *testing.T) {
	var mu sync.Mutex
	came := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		came[r.URL.Path]++
		switch {
		case r.URL.Path == "/refused" && came[r.URL.Path] == 1:
			w.Header().Set("Retry-After-Ms", "50")
			w.WriteHeader(http.StatusTooManyRequests)
		case r.URL.Path == "/down":
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte("{}"))
		}
	}))
	defer server.Close()
	for _, tt := range []struct {
		query       string
		taken, came int
		slow        time.Duration
		code        marchwarden.Code
	}{
		{"", 1, 0, 0, ""},
		{"one", 1, 1, 0, ""},
		{"one two three", 3, 3, 0, ""},
		{"refused", 2, 2, 50 * time.Millisecond, ""}, // the client asks once more
		{"down", 1, 1, time.Minute, marchwarden.CodeUnavailable},
	} {
		clear(came)
		s := &share{}
		client := &http.Client{}
		e := NewRationed(s, func() time.Time { return noon }, client, func(h *http.Client) search.Engine {
			return &fake{httpapi.Service{Name: "fake", Base: server.URL, HTTP: h}}
		})
		_, err := e.Search(t.Context(), search.Query{Text: tt.query})
		all := 0
		for _, n := range came {
			all += n
		}
		var slow time.Duration
		for _, d := range s.slow {
			slow += d
		}
		if marchwarden.CodeOf(err) != tt.code || s.taken != tt.taken || s.used != all || all != tt.came || slow != tt.slow {
			t.Errorf("%q: %v; took %d and used %d, %d requests, slow %v; want %+v", tt.query, err, s.taken, s.used, all, slow, tt)
		}
		e.(*rationed).Engine.(*fake).service.HTTP.CloseIdleConnections()
	}
}

func TestNotAllowed(t *testing.T) {
	s := &share{err: &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: "used up", Hint: "tomorrow"}}
	e := NewRationed(s, time.Now, &http.Client{}, func(h *http.Client) search.Engine {
		return &fake{httpapi.Service{Name: "fake", Base: "http://127.0.0.1:1", HTTP: h}}
	})
	_, err := e.Search(t.Context(), search.Query{Text: "x"})
	if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || err.Error() != "fake: it was not asked: used up" || marchwarden.HintOf(err) != "tomorrow" {
		t.Errorf("%v", err)
	}
}

// answers is a service without a network.
type answers struct{}

func (answers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// TestNothingAsked: searches that ask for nothing use nothing, however long ago another
// one did, and those that ask use up what there is of a day.
func TestNothingAsked(t *testing.T) {
	for rate, want := range map[string]marchwarden.Code{"2/m": "", "2/day": marchwarden.CodeExhausted} {
		synctest.Test(t, func(t *testing.T) {
			rules, err := limit.ParseRules([]string{"fake requests " + rate})
			if err != nil {
				t.Fatal(err)
			}
			set := &limit.Set{Rules: rules, Now: time.Now, Store: limit.Folder(t.TempDir(), time.Now)}
			e := NewRationed(set.Limit("fake/requests"), time.Now, &http.Client{Transport: answers{}}, func(h *http.Client) search.Engine {
				return &fake{httpapi.Service{Name: "fake", Base: "http://127.0.0.1:1", HTTP: h}}
			})
			searches := func(text string) (time.Duration, marchwarden.Code) {
				began := time.Now()
				_, err := e.Search(t.Context(), search.Query{Text: text})
				synctest.Wait() // until what was not used is given back
				return time.Since(began), marchwarden.CodeOf(err)
			}
			searches("one")
			time.Sleep(2 * time.Minute)
			for i := range 5 {
				if d, code := searches(""); d > time.Second || code != "" {
					t.Errorf("%s: search %d for nothing waited for %v: %s", rate, i, d, code)
				}
			}
			searches("two")
			if d, code := searches("three"); code != want || want != "" && d > time.Second {
				t.Errorf("%s: %q after %v, want %q", rate, code, d, want)
			}
		})
	}
}
