package streams_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	datatest.Abreast(8)
	datatest.InMemory()
	goleak.VerifyTestMain(m)
}

// childEnv makes the test binary a worker: the address of the hub, a space, and that of
// the provider.
const childEnv = "MARCHWARDEN_TEST_LIMIT_CHILD"

const childLasts = 12 * time.Second

// child is a worker that uses what it gets.
func child() int {
	hub, provider, _ := strings.Cut(os.Getenv(childEnv), " ")
	ctx, cancel := context.WithTimeout(context.Background(), childLasts)
	defer cancel()
	e, err := cluster.Open(ctx, cluster.Config{URL: hub, Name: fmt.Sprint("worker", os.Getpid()), Now: time.Now})
	if err == nil {
		err = use(ctx, e.Limit("acme/requests"), provider, 8)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// longer says that tests are wanted which take a while.
func longer() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") != "" }

// serve starts a hub on a loopback port and prepares it.
func serve(t *testing.T, limits ...string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{ServerName: "hub", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	prepare(t, s, limits...)
	return s
}

func prepare(t *testing.T, s *server.Server, limits ...string) {
	t.Helper()
	if err := cluster.Prepare(t.Context(), cluster.Config{URL: s.ClientURL(), Name: "hub", Now: time.Now}, cluster.Facts{Limits: limits}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, s *server.Server, name string) *cluster.Engine {
	t.Helper()
	e, err := cluster.Open(t.Context(), cluster.Config{URL: s.ClientURL(), Name: name, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// provider is a service that notes when requests arrive, and may refuse one.
type provider struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	came    []time.Time
	refuse  int // this many come until one is refused; 0 refuses none
	refused time.Time
}

const askedWait = 2 * time.Second

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.came = append(p.came, at)
		if p.refuse > 0 && len(p.came) >= p.refuse && p.refused.IsZero() {
			p.refused = at
			w.Header().Set("Retry-After", strconv.Itoa(int(askedWait.Seconds())))
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) arrivals() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.came), time.Time.Compare)
}

// most is how many came in the busiest second, wherever it begins.
func most(came []time.Time) int {
	most, first := 0, 0
	for i, at := range came {
		for at.Sub(came[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// use has callers of one worker ask the provider as often as they may.
func use(ctx context.Context, l dispatch.Limiter, address string, callers int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	errs := make(chan error, callers)
	for range callers {
		go func() { errs <- useOne(ctx, l, client, address) }()
	}
	var all error
	for range callers {
		all = errors.Join(all, <-errs)
	}
	return all
}

func useOne(ctx context.Context, l dispatch.Limiter, client *http.Client, address string) error {
	for {
		if _, err := l.Take(ctx, 1); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		resp, err := client.Get(address)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			l.Slow(time.Now().Add(askedWait))
		}
	}
}

// TestSixWorkers is the bar: six workers with connections of their own share a limit, and
// the provider never sees more than a twentieth above it in any second.
func TestSixWorkers(t *testing.T) {
	t.Parallel()
	const n = 50
	s, p := serve(t, fmt.Sprintf("acme requests %d/s", n)), newProvider(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 6 {
		e := open(t, s, fmt.Sprint("worker", i))
		wg.Go(func() {
			if err := use(ctx, e.Limit("acme/requests"), p.URL, 6); err != nil {
				t.Error(err)
			}
		})
	}
	const atLeast, lasts = 0.8, 4500 * time.Millisecond
	began := time.Now()
	wait(func() bool { return time.Since(began) > lasts && float64(most(p.arrivals())) >= atLeast*n })
	cancel()
	wg.Wait()
	report(t, p.arrivals(), n, atLeast)
}

// wait waits until something is so. What is never so is for the caller to report.
func wait(ok func() bool) {
	for end := time.Now().Add(time.Minute); !ok() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// report checks that there is never too much, and not always too little: a busy machine
// misses slots, so the best second counts, not the average.
func report(t *testing.T, came []time.Time, n float64, atLeast float64) {
	t.Helper()
	if len(came) < 2 {
		t.Fatalf("%d came", len(came))
	}
	per := float64(len(came)-1) / came[len(came)-1].Sub(came[0]).Seconds()
	t.Logf("limit %v/s: %d in the busiest second, %.1f/s on average (%.0f %%)", n, most(came), per, 100*per/n)
	late := 1 + n/20 // requests that a busy machine notes in the second after theirs
	if got := float64(most(came)); got > 1.05*n+late || got < atLeast*n {
		t.Errorf("%v in the busiest second, of %v", got, n)
	}
}

// TestRefusedOnce: when the provider asks one worker to come back in two seconds, no worker that
// shares the limit calls for two seconds, and then they do.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	s, p := serve(t, "acme requests 40/s"), newProvider(t)
	p.refuse = 30
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 3 {
		l := open(t, s, fmt.Sprint("worker", i)).Limit("acme/requests")
		wg.Go(func() {
			if err := use(ctx, l, p.URL, 2); err != nil {
				t.Error(err)
			}
		})
	}
	wait(func() bool { _, after := p.sinceRefused(); return after >= 10 })
	cancel()
	wg.Wait()
	if meanwhile, after := p.sinceRefused(); meanwhile > 3 || after < 10 { // each worker may have had a call under way
		t.Errorf("%d came meanwhile, %d afterwards", meanwhile, after)
	}
}

// TestRefusedWithoutALimit: a worker that was refused stays away from a provider without a limit,
// and another does not hear of it.
func TestRefusedWithoutALimit(t *testing.T) {
	t.Parallel()
	s := serve(t, "other requests 1/s")
	refused, other := open(t, s, "refused").Limit("acme/requests"), open(t, s, "other").Limit("acme/requests")
	began := time.Now()
	refused.Slow(began.Add(askedWait))
	for _, l := range []dispatch.Limiter{other, refused} {
		if _, err := l.Take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); (took > askedWait-100*time.Millisecond) != (l == refused) {
			t.Errorf("the refused one: %v, after %v", l == refused, took)
		}
	}
}

// sinceRefused is how many came while the provider wanted none, and how many afterwards.
func (p *provider) sinceRefused() (meanwhile, after int) {
	const onTheWay = 150 * time.Millisecond
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused.IsZero() {
		return 0, 0
	}
	for _, at := range p.came {
		switch since := at.Sub(p.refused); {
		case since > askedWait-10*time.Millisecond: // slots come up to a moment early by another's clock
			after++
		case since > onTheWay:
			meanwhile++
		}
	}
	return meanwhile, after
}

// TestMoneyIsKept: what was spent is known to an engine that is opened later, and the
// error says when the day is over.
func TestMoneyIsKept(t *testing.T) {
	t.Parallel()
	s := serve(t, "acme money 1/day", "acme tokens 1000/m")
	first := open(t, s, "first")
	settle, err := first.Limit("acme/money").Take(t.Context(), 900_000)
	if err != nil {
		t.Fatal(err)
	}
	settle(700_000)
	second := open(t, s, "second")
	settle, err = second.Limit("acme/money").Take(t.Context(), 300_000)
	if err != nil {
		t.Fatal(err)
	}
	settle(300_000)
	_, err = second.Limit("acme/money").Take(t.Context(), 400_000)
	if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || marchwarden.HintOf(err) == "" {
		t.Errorf("too much: %v", err)
	}
}

// TestNoEngineNobodyGoes: without the engine it is unknown what others use, and Take says so after
// a while.
func TestNoEngineNobodyGoes(t *testing.T) {
	if !longer() {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	t.Parallel()
	s := serve(t, "acme requests 50/s")
	l := open(t, s, "worker").Limit("acme/requests")
	if _, err := l.Take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	began := time.Now()
	_, err := l.Take(t.Context(), 1)
	if took := time.Since(began); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || took > 25*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}
