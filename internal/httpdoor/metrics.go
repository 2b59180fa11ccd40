package httpdoor

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Metrics are the measurements of one process. Every label has few values, whatever callers send. All
// methods are safe for concurrent use, and those of nil do nothing.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	rejected *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge

	operations *prometheus.HistogramVec
	research   *prometheus.HistogramVec
	tokens     *prometheus.CounterVec
	gauges     atomic.Pointer[Gauges]
}

// Gauges are numbers that are read with the measurements, quickly and concurrently. A nil one is 0.
type Gauges struct {
	Research func() int // running now
	Sessions func() int // of MCP clients, open now
	Tasks    func() int // not ended
}

// The buckets that the conventions of OpenTelemetry name for MCP operations, in seconds.
var seconds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// outcomes are the values of the label outcome that are not codes of failures.
var outcomes = []string{"ok", "answered", "budget_exhausted"}

// other stands for every value of a label beyond those that are known.
const other = "other"

// NewMetrics makes measurements for a program of this version.
func NewMetrics(version string) *Metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	measure := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
	}
	m := &Metrics{
		registry:   prometheus.NewRegistry(),
		requests:   count("marchwarden_http_requests_total", "HTTP requests answered, by kind of path, method and class of status.", "path", "method", "status"),
		rejected:   count("marchwarden_http_rejected_total", "HTTP requests that the door refused, by reason.", "reason"),
		duration:   measure("marchwarden_http_request_duration_seconds", "Time from the head of a request to the end of its answer, by kind of path.", "path"),
		inFlight:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "marchwarden_http_requests_in_flight", Help: "HTTP requests being answered."}),
		operations: measure("mcp_server_operation_duration_seconds", "Duration of MCP requests and notifications as the server sees them.", "mcp_method_name", "outcome"),
		research:   measure("marchwarden_research_duration_seconds", "Duration of research, by how it ended.", "outcome"),
		tokens:     count("marchwarden_research_tokens_total", "Tokens of language models used by research, by how it ended.", "outcome"),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "marchwarden_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.requests, m.rejected, m.duration, m.inFlight, m.operations, m.research, m.tokens,
		m.gauge("marchwarden_research_running", "Research running now.", func(g *Gauges) func() int { return g.Research }),
		m.gauge("marchwarden_mcp_sessions", "Sessions of MCP clients that are open.", func(g *Gauges) func() int { return g.Sessions }),
		m.gauge("marchwarden_mcp_tasks", "MCP tasks that have not ended.", func(g *Gauges) func() int { return g.Tasks }))
	return m
}

func (m *Metrics) gauge(name, help string, which func(*Gauges) func() int) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		if g := m.gauges.Load(); g != nil && which(g) != nil {
			return float64(which(g)())
		}
		return 0
	})
}

// Watch sets where the gauges are read from, in place of those before.
func (m *Metrics) Watch(g Gauges) {
	if m != nil {
		m.gauges.Store(&g)
	}
}

// Add has others measured besides. One whose names are taken is CodeInternal.
func (m *Metrics) Add(others ...prometheus.Collector) error {
	if m == nil {
		return nil
	}
	for _, c := range others {
		if err := m.registry.Register(c); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeInternal, "measure more")
		}
	}
	return nil
}

// mcpMethods are the values of mcp_method_name.
var mcpMethods = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list",
	"resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "prompts/list", "prompts/get", "completion/complete",
	"logging/setLevel", "tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result",
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"}

// ObserveOperation counts one MCP request or notification. A method that is not of MCP
// counts as "other", and so does an outcome that is neither a code nor a word of ours.
func (m *Metrics) ObserveOperation(method, ended string, took time.Duration) {
	if m == nil {
		return
	}
	m.operations.WithLabelValues(either(method, slices.Contains(mcpMethods, method)), outcome(ended)).Observe(took.Seconds())
}

// ObserveResearch counts one research that has ended, with the tokens it used.
func (m *Metrics) ObserveResearch(ended string, took time.Duration, tokens int) {
	if m == nil {
		return
	}
	m.research.WithLabelValues(outcome(ended)).Observe(took.Seconds())
	m.tokens.WithLabelValues(outcome(ended)).Add(float64(max(0, tokens)))
}

// Failures is a researcher whose failures are counted; of its answers ObserveResearch is to be told.
func (m *Metrics) Failures(r marchwarden.Researcher, now func() time.Time) marchwarden.Researcher {
	return failures{r, m, now}
}

type failures struct {
	marchwarden.Researcher
	metrics *Metrics
	now     func() time.Time
}

func (f failures) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	began := f.now()
	res, err := f.Researcher.Research(ctx, req, sink)
	if err != nil {
		f.metrics.ObserveResearch(string(marchwarden.CodeOf(err)), f.now().Sub(began), 0)
	}
	return res, err
}

// either is a value of a label if it is one of those that are known, and else other.
func either(value string, known bool) string {
	if known {
		return value
	}
	return other
}

func outcome(s string) string {
	return either(s, marchwarden.Code(s).Known() || slices.Contains(outcomes, s))
}

// httpMethods are the values of the label method.
var httpMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}

func (m *Metrics) begin() {
	if m != nil {
		m.inFlight.Inc()
	}
}

func (m *Metrics) end(path, method string, status int, took time.Duration) {
	if m == nil {
		return
	}
	m.inFlight.Dec()
	m.requests.WithLabelValues(path, either(method, slices.Contains(httpMethods, method)), strconv.Itoa(status/100)+"xx").Inc()
	m.duration.WithLabelValues(path).Observe(took.Seconds())
}

func (m *Metrics) reject(reason string) {
	if m != nil {
		m.rejected.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
