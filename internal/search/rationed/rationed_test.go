package rationed

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// share notes what is asked of it.
type share struct {
	err error

	mu               sync.Mutex // guards what follows
	waited, refunded int
	slow             []time.Duration
}

func (s *share) Wait(context.Context, int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.waited++
	}
	return s.err
}

func (s *share) Refund(int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refunded++
}

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
		query                  string
		waited, refunded, came int
		slow                   time.Duration
		code                   marchwarden.Code
	}{
		{"", 1, 1, 0, 0, ""},
		{"one", 1, 0, 1, 0, ""},
		{"one two three", 3, 0, 3, 0, ""},
		{"refused", 2, 0, 2, 50 * time.Millisecond, ""}, // the client asks once more
		{"down", 1, 0, 1, time.Minute, marchwarden.CodeUnavailable},
	} {
		clear(came)
		s := &share{}
		client := &http.Client{}
		e := New(s, func() time.Time { return noon }, client, func(h *http.Client) search.Engine {
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
		if marchwarden.CodeOf(err) != tt.code || s.waited != tt.waited || s.refunded != tt.refunded || all != tt.came || slow != tt.slow {
			t.Errorf("%q: %v; waited %d, gave back %d, %d requests, slow %v; want %+v", tt.query, err, s.waited, s.refunded, all, slow, tt)
		}
		e.(*engine).Engine.(*fake).service.HTTP.CloseIdleConnections()
	}
}

func TestNotAllowed(t *testing.T) {
	s := &share{err: &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: "used up", Hint: "tomorrow"}}
	e := New(s, time.Now, &http.Client{}, func(h *http.Client) search.Engine {
		return &fake{httpapi.Service{Name: "fake", Base: "http://127.0.0.1:1", HTTP: h}}
	})
	_, err := e.Search(t.Context(), search.Query{Text: "x"})
	if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || err.Error() != "fake: it was not asked: used up" || marchwarden.HintOf(err) != "tomorrow" {
		t.Errorf("%v", err)
	}
	if ForEngine("tavily") != limit.Key("tavily", limit.Requests) {
		t.Error(ForEngine("tavily"))
	}
}

func TestWantsNobody(t *testing.T) {
	for _, tt := range []struct {
		status int
		after  string
		want   time.Duration
	}{{200, "5", 0}, {429, "", usualPause}, {429, "5", 5 * time.Second}, {429, "soon", usualPause}, {503, "", 0}, {503, "7", 7 * time.Second}, {500, "7", 0}, {429, "0", 0}} {
		h := http.Header{}
		if tt.after != "" {
			h.Set("Retry-After", tt.after)
		}
		if got, ok := wantsNobody(tt.status, h, noon); got != tt.want && ok || ok != (tt.want > 0) {
			t.Errorf("%d %q: %v %v", tt.status, tt.after, got, ok)
		}
	}
}
