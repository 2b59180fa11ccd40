package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

const (
	maxRequestBody = 2 << 20  // before compression
	maxAnswer      = 64 << 10 // more of an answer is not read

	firstPause   = time.Second
	longestPause = 8 * time.Second
	jitterPart   = 0.25

	warnEvery = time.Minute
)

// exporter sends batches of spans to the collector. Its ExportSpans never fails: the
// SDK would print the error past our log. What cannot be sent is lost, and told.
type exporter struct {
	settings *settings
	client   *http.Client
	resource []object
	now      func() time.Time
	log      *slog.Logger

	ended, delivered atomic.Int64 // spans

	hurried context.Context // ends when Close begins: no export waits any more
	hurry   context.CancelFunc
	life    context.Context // ends with Close: nothing is sent any more
	kill    context.CancelFunc

	mu   sync.Mutex // guards what follows
	told time.Time  // when the last warning was
}

// counted counts the spans that end, whether the queue has room for them or not.
type counted struct {
	sdktrace.SpanProcessor
	ended *atomic.Int64
}

// OnEnd counts and passes on.
func (c *counted) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.ended.Add(1)
	}
	c.SpanProcessor.OnEnd(s)
}

func newExporter(s *settings, cfg Config, log *slog.Logger) *exporter {
	e := &exporter{settings: s, resource: wireAttributes(s.resource), now: cfg.Now, log: log}
	e.client = &http.Client{
		// The headers are for one collector.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConns:        2,
			ForceAttemptHTTP2:   true,
		},
	}
	e.life, e.kill = context.WithCancel(context.Background())
	e.hurried, e.hurry = context.WithCancel(context.Background())
	return e
}

// end stops all sending. Whether it was done tells the cause of what is missing.
func (e *exporter) end(done bool) {
	e.kill()
	e.client.CloseIdleConnections()
	why := "the time to send the last ones was over"
	if done {
		why = "the queue was full, or the collector refused them"
	}
	if e.ended.Load() > e.delivered.Load() {
		e.warn("spans are lost", why)
	}
}

// Shutdown has nothing to do: the tracer ends its exporter.
func (e *exporter) Shutdown(context.Context) error { return nil }

// ExportSpans sends a batch, with repetitions until ctx ends.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.life.Err() != nil || len(spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	bodies, err := encode(spans, e.resource, maxRequestBody)
	if err != nil {
		e.warn("spans are lost", err.Error())
	}
	for _, b := range bodies {
		e.send(ctx, b)
	}
	return nil
}

// send sends one request until it is taken or has failed for good.
func (e *exporter) send(ctx context.Context, b body) {
	payload := b.raw
	if e.settings.gzip {
		payload = compress(b.raw)
	}
	for attempt := 0; ; attempt++ {
		last := e.hurried.Err() != nil
		rejected, err := e.post(ctx, payload)
		if err == nil {
			e.delivered.Add(max(int64(b.spans)-rejected, 0))
			return
		}
		var later *laterError
		if last || !errors.As(err, &later) || !e.pause(ctx, cmp.Or(later.wait, backoff(attempt))) {
			if e.life.Err() == nil { // else Close tells
				e.warn("spans are lost", err.Error())
			}
			return
		}
	}
}

// pause waits before the next attempt and reports whether there is to be one. There is
// when the tracer is being closed, at once: the last.
func (e *exporter) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.hurried.Done():
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// backoff is the pause after a number of failures.
func backoff(attempt int) time.Duration {
	d := longestPause
	if attempt < 3 {
		d = firstPause << attempt
	}
	return d - time.Duration(jitterPart*rand.Float64()*float64(d))
}

// laterError is a failure that may pass.
type laterError struct {
	wait time.Duration // that the collector asks for; 0 is none
	why  string
}

func (e *laterError) Error() string { return e.why }

// retried are the statuses after which OTLP has a client try again.
var retried = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// post makes one request. It returns how many of the spans the collector did not want.
// No error holds the collector's path, the headers or the answer's text.
func (e *exporter) post(ctx context.Context, payload []byte) (rejected int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.settings.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.endpoint.String(), bytes.NewReader(payload))
	if err != nil {
		return 0, errors.New("make the request: the endpoint is no address")
	}
	req.Header.Set("User-Agent", "marchwarden OTLP/JSON")
	for key, values := range e.settings.header {
		req.Header[key] = values
	}
	req.Header.Set("Content-Type", "application/json")
	if e.settings.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, &laterError{why: e.said(err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the connection is used again if this is all
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		return e.partial(answer), nil // taken, even if the answer broke off
	case slices.Contains(retried, resp.StatusCode):
		wait, _ := httpapi.RetryAfter(resp.Header, e.now())
		return 0, &laterError{wait: wait, why: "the collector answered " + strconv.Itoa(resp.StatusCode)}
	case err != nil:
		return 0, fmt.Errorf("the collector answered %d and broke off", resp.StatusCode)
	}
	return 0, fmt.Errorf("the collector answered %d", resp.StatusCode)
}

// said is why there was no answer, without the address and the secrets.
func (e *exporter) said(err error) string {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the collector did not answer in time"
	}
	return "the collector cannot be reached: " + httpapi.Said(err.Error(), e.settings.secrets)
}

// partial reads what of a batch was not wanted, and tells. What is no answer of OTLP
// says nothing.
func (e *exporter) partial(answer []byte) int64 {
	var r struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number or a string of one
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &r) != nil {
		return 0
	}
	rejected, _ := strconv.ParseInt(string(bytes.Trim(r.PartialSuccess.RejectedSpans, `"`)), 10, 64)
	rejected = max(rejected, 0)
	message := httpapi.Said(r.PartialSuccess.ErrorMessage, e.settings.secrets)
	switch {
	case rejected > 0:
		e.warn("the collector rejected spans", message, slog.Int64("rejected", rejected))
	case message != "":
		e.warn("the collector took the spans with a warning", message)
	}
	return rejected
}

// warn logs what went wrong, unless something was logged less than a minute ago.
func (e *exporter) warn(what, why string, more ...any) {
	e.mu.Lock()
	now := e.now()
	quiet := !e.told.IsZero() && now.Sub(e.told) < warnEvery
	if !quiet {
		e.told = now
	}
	e.mu.Unlock()
	if quiet {
		return
	}
	more = append(more, slog.String("reason", why), slog.String("collector", e.settings.endpoint.Host),
		slog.Int64("ended", e.ended.Load()), slog.Int64("delivered", e.delivered.Load()))
	e.log.Warn("telemetry: "+what, more...)
}

func compress(raw []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(raw) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}
