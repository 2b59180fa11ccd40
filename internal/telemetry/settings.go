package telemetry

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What holds where nothing is set, as the OpenTelemetry specification has it, and the
// bounds of what can be set.
const (
	defaultTimeout       = 10 * time.Second // of one request to the collector
	defaultExportTimeout = 30 * time.Second // of a batch with its repetitions
	defaultDelay         = 5 * time.Second
	defaultQueue         = 2048
	defaultBatch         = 512

	longestTime = 10 * time.Minute
	maxQueue    = 1 << 16
	maxPairs    = 64 // of a list of headers or attributes
)

// settings are the OTEL_* settings, read.
type settings struct {
	endpoint *url.URL
	header   http.Header
	secrets  []string // what no log may show
	timeout  time.Duration
	gzip     bool

	sampler       sdktrace.Sampler
	queue, batch  int
	delay         time.Duration
	exportTimeout time.Duration
	resource      []attribute.KeyValue

	notes []string // what the user should know
}

// env reads settings one by one and keeps the first fault.
type env struct {
	look func(string) string
	err  error
}

// get is the value of a setting.
func (e *env) get(name string) string { return strings.TrimSpace(e.look(name)) }

// otlp is a setting of the OTLP exporter, for traces or else for every signal, and
// which of the two it is.
func (e *env) otlp(suffix string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + suffix
	if value = e.get(name); value != "" {
		return name, value
	}
	name = "OTEL_EXPORTER_OTLP_" + suffix
	return name, e.get(name)
}

// bad notes the fault of a setting. Its value is not repeated: it may be a secret in
// the wrong place.
func (e *env) bad(name, format string, args ...any) {
	if e.err == nil {
		e.err = &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: name, Message: fmt.Sprintf(format, args...)}
	}
}

// readSettings reads the settings; nil is that there is nothing to do.
func readSettings(cfg Config) (*settings, error) {
	e := &env{look: cfg.Env}
	if _, at := e.otlp("ENDPOINT"); at == "" || !e.enabled() {
		return nil, e.err
	}
	s := &settings{}
	e.endpoint(s)
	e.headers(s)
	name, value := e.otlp("TIMEOUT")
	s.timeout = e.milliseconds(name, value, defaultTimeout)
	switch name, value := e.otlp("COMPRESSION"); value {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		e.bad(name, "must be gzip or none")
	}
	e.protocol(s)
	e.sampler(s)
	e.batches(s)
	e.resource(s, cfg)
	e.unsupported(s)
	s.secrets = slices.DeleteFunc(s.secrets, func(v string) bool { return v == "" })
	if e.err != nil {
		return nil, e.err
	}
	return s, nil
}

// enabled reports whether traces are wanted.
func (e *env) enabled() bool {
	switch off := e.get("OTEL_SDK_DISABLED"); strings.ToLower(off) {
	case "true":
		return false
	case "", "false":
	default:
		e.bad("OTEL_SDK_DISABLED", "must be true or false")
	}
	switch e.get("OTEL_TRACES_EXPORTER") {
	case "none":
		return false
	case "", "otlp":
	default:
		e.bad("OTEL_TRACES_EXPORTER", "must be otlp or none")
	}
	return e.err == nil
}

// endpoint reads where the collector is.
func (e *env) endpoint(s *settings) {
	name, value := e.otlp("ENDPOINT")
	u, err := url.Parse(value)
	switch {
	case err != nil:
		e.bad(name, "is no URL")
		return
	case u.Scheme != "http" && u.Scheme != "https":
		e.bad(name, "must begin with http:// or https://")
		return
	case u.Hostname() == "":
		e.bad(name, "has no host")
		return
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" { // the other one is taken as it is
		u = u.JoinPath("v1", "traces")
	}
	u.Fragment = ""
	s.endpoint = u
	s.secrets = append(s.secrets, u.RawQuery)
	for _, values := range u.Query() {
		s.secrets = append(s.secrets, values...)
	}
	if password, ok := u.User.Password(); ok {
		s.secrets = append(s.secrets, u.User.Username(), password)
	}
}

// ownHeaders say what is sent; no setting may contradict them.
var ownHeaders = map[string]bool{"Content-Type": true, "Content-Encoding": true, "Content-Length": true, "Host": true, "Transfer-Encoding": true}

// headers reads what to send with every request. The values are secrets.
func (e *env) headers(s *settings) {
	name, value := e.otlp("HEADERS")
	s.header = http.Header{}
	for i, pair := range e.pairs(name, value) {
		key := http.CanonicalHeaderKey(pair[0])
		switch {
		case !isToken(pair[0]):
			e.bad(name, "entry %d has no name of a header", i+1)
		case ownHeaders[key]:
			e.bad(name, "entry %d: %s cannot be set", i+1, key)
		case strings.ContainsFunc(pair[1], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			e.bad(name, "entry %d has a control character", i+1)
		}
		s.header.Set(key, pair[1])
		s.secrets = append(s.secrets, pair[1])
		if _, token, ok := strings.Cut(pair[1], " "); ok { // "Bearer …"
			s.secrets = append(s.secrets, token)
		}
	}
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// pairs reads a list such as "a=1,b=%202", percent-encoded.
func (e *env) pairs(name, list string) [][2]string {
	var pairs [][2]string
	if list == "" {
		return nil
	}
	for i, entry := range strings.Split(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		key, value, ok := strings.Cut(entry, "=")
		key, err1 := url.PathUnescape(strings.TrimSpace(key))
		value, err2 := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || err1 != nil || err2 != nil {
			e.bad(name, "entry %d is not key=value, percent-encoded", i+1)
			return nil
		}
		pairs = append(pairs, [2]string{key, value})
	}
	if len(pairs) > maxPairs {
		e.bad(name, "must have at most %d entries, has %d", maxPairs, len(pairs))
		return nil
	}
	return pairs
}

// protocol tells those who ask for another encoding what they get.
func (e *env) protocol(s *settings) {
	const sent = " is not supported: JSON over HTTP is sent, which every OTLP collector takes"
	switch name, value := e.otlp("PROTOCOL"); value {
	case "", "http/json":
	case "http/protobuf":
		s.notes = append(s.notes, name+"="+value+sent)
	case "grpc":
		s.notes = append(s.notes, name+"="+value+sent+" on its HTTP port, commonly 4318 and not 4317")
	default:
		e.bad(name, "must be http/json")
	}
}

// sampler reads which traces to keep.
func (e *env) sampler(s *settings) {
	const arg = "OTEL_TRACES_SAMPLER_ARG"
	ratio := 1.0
	kind := strings.ToLower(e.get("OTEL_TRACES_SAMPLER"))
	if strings.HasSuffix(kind, "traceidratio") && e.get(arg) != "" {
		n, err := strconv.ParseFloat(e.get(arg), 64)
		if err != nil || !(n >= 0 && n <= 1) {
			e.bad(arg, "must be a number from 0 to 1")
		}
		ratio = n
	}
	base, parented := strings.CutPrefix(cmp.Or(kind, "parentbased_always_on"), "parentbased_")
	switch base {
	case "always_on":
		s.sampler = sdktrace.AlwaysSample()
	case "always_off":
		s.sampler = sdktrace.NeverSample()
	case "traceidratio":
		s.sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		e.bad("OTEL_TRACES_SAMPLER", "must be always_on, always_off or traceidratio, each alone or after parentbased_")
		return
	}
	if parented {
		s.sampler = sdktrace.ParentBased(s.sampler)
	}
}

// batches reads how spans are gathered.
func (e *env) batches(s *settings) {
	const delay, timeout, queue, batch = "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	s.delay = e.milliseconds(delay, e.get(delay), defaultDelay)
	s.exportTimeout = e.milliseconds(timeout, e.get(timeout), defaultExportTimeout)
	s.queue = e.number(queue, e.get(queue), "", defaultQueue, maxQueue)
	s.batch = e.number(batch, e.get(batch), "", min(defaultBatch, s.queue), maxQueue)
	if s.batch > s.queue {
		e.bad(batch, "must be at most %d, the size of the queue", s.queue)
	}
}

// number reads a whole number from 1 to most, of a unit.
func (e *env) number(name, value, unit string, byDefault, most int) int {
	if value == "" {
		return byDefault
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		e.bad(name, "must be a whole number%s from 1 to %d", unit, most)
	}
	return n
}

// milliseconds reads a time.
func (e *env) milliseconds(name, value string, byDefault time.Duration) time.Duration {
	return time.Duration(e.number(name, value, " of milliseconds", int(byDefault.Milliseconds()), int(longestTime.Milliseconds()))) * time.Millisecond
}

// resource reads who sends.
func (e *env) resource(s *settings, cfg Config) {
	const list = "OTEL_RESOURCE_ATTRIBUTES"
	named := []attribute.KeyValue{keyServiceName.String(scopeName)}
	if cfg.Version != "" {
		named = append(named, keyServiceVersion.String(cfg.Version))
	}
	for _, pair := range e.pairs(list, e.get(list)) {
		named = append(named, attribute.String(pair[0], pair[1]))
	}
	if service := e.get("OTEL_SERVICE_NAME"); service != "" {
		named = append(named, keyServiceName.String(service))
	}
	named = append(named, keyTelemetryName.String("opentelemetry"), keyTelemetryLang.String("go"), keyTelemetryVersion.String(sdk.Version()))
	set := attribute.NewSet(named...) // sorted, the last of each key
	s.resource = set.ToSlice()
}

// unsupported tells those who set what has no effect here.
func (e *env) unsupported(s *settings) {
	for _, suffix := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		if name, value := e.otlp(suffix); value != "" {
			s.notes = append(s.notes, name+" is not supported: the certificates of the system are used")
		}
	}
	const content = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	if value := e.get(content); value != "" && !strings.EqualFold(value, "false") {
		s.notes = append(s.notes, content+" is not supported: spans never hold questions, prompts or answers")
	}
}
