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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
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

// rationed is an engine whose every request counts.
func rationed(share dispatch.Limiter, now func() time.Time, address string, base http.RoundTripper) *fake {
	client := &http.Client{Transport: Transport(func(string) dispatch.Limiter { return share }, now, base)}
	return &fake{httpapi.Service{Name: "fake", Base: address, HTTP: client}}
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
		{"", 0, 0, 0, ""},
		{"one", 1, 1, 0, ""},
		{"one two three", 3, 3, 0, ""},
		{"refused", 2, 2, 50 * time.Millisecond, ""}, // the client asks once more
		{"down", 1, 1, time.Minute, marchwarden.CodeUnavailable},
	} {
		clear(came)
		s := &share{}
		e := rationed(s, func() time.Time { return noon }, server.URL, nil)
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
		e.service.HTTP.CloseIdleConnections()
	}
}

func TestNotAllowed(t *testing.T) {
	s := &share{err: &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: "used up", Hint: "tomorrow"}}
	e := rationed(s, time.Now, "http://127.0.0.1:1", nil)
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

// TestWaitsInsideItsTime: a request waits for its share within the time of its service, and
// one that a day has no room for is refused at once.
func TestWaitsInsideItsTime(t *testing.T) {
	for rate, want := range map[string]struct {
		code marchwarden.Code
		wait time.Duration
	}{
		"1/s": {"", time.Second}, "1/m": {marchwarden.CodeTimeout, httpapi.DefaultTimeout}, "1/day": {marchwarden.CodeExhausted, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			rules, err := limit.ParseRules([]string{"fake requests " + rate})
			if err != nil {
				t.Fatal(err)
			}
			set := &limit.Set{Rules: rules, Now: time.Now, Store: limit.Folder(t.TempDir(), time.Now)}
			e := rationed(set.Limit("fake/requests"), time.Now, "http://127.0.0.1:1", answers{})
			began := time.Now()
			for err == nil && time.Since(began) == 0 { // as many as may be asked at once
				_, err = e.Search(t.Context(), search.Query{Text: "one"})
			}
			if code, d := marchwarden.CodeOf(err), time.Since(began); code != want.code || d.Round(time.Second) != want.wait {
				t.Errorf("%s: %q after %v, want %q after %v", rate, code, d, want.code, want.wait)
			}
		})
	}
}
