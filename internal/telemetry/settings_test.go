package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

func TestBadSettings(t *testing.T) {
	const base = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, test := range []struct{ name, value string }{
		{base, "canary"},
		{base, "canary:4318"},
		{base, "ftp://canary"},
		{base, "http://"},
		{base, "http://[canary"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "=canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%zzcanary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a b=canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=canary%0d%0ax:1"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "host=canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS", strings.Repeat("a=canary,", 100)},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "content-type=canary"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "canary"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "99999999999"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "canary"},
		{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "canary"},
		{"OTEL_SDK_DISABLED", "canary"},
		{"OTEL_TRACES_EXPORTER", "canary"},
		{"OTEL_TRACES_SAMPLER", "canary"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "-1"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "100000000"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "canary"},
		{"OTEL_BSP_EXPORT_TIMEOUT", "1.5"},
		{"OTEL_RESOURCE_ATTRIBUTES", "canary"},
	} {
		env := map[string]string{base: "http://127.0.0.1:4318"}
		env[test.name] = test.value
		tracer, err := telemetry.Start(telemetry.Config{Env: func(k string) string { return env[k] }, Now: time.Now})
		if tracer != nil || !errors.Is(err, marchwarden.CodeInvalid) || !strings.HasPrefix(err.Error(), test.name+": ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
	}
	for _, arg := range []string{"canary", "NaN", "-0.1", "1.5"} {
		env := map[string]string{base: "http://127.0.0.1:4318", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": arg}
		_, err := telemetry.Start(telemetry.Config{Env: func(k string) string { return env[k] }, Now: time.Now})
		if !errors.Is(err, marchwarden.CodeInvalid) || !strings.HasPrefix(err.Error(), "OTEL_TRACES_SAMPLER_ARG: ") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestSettings(t *testing.T) {
	c := collect(t, nil)
	r := start(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":                        c.URL + "/base/?tenant=1",
		"OTEL_EXPORTER_OTLP_HEADERS":                         "ignored=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":                  " api-key=a%2Cb%20c+d , x-second=2,",
		"OTEL_EXPORTER_OTLP_COMPRESSION":                     "gzip",
		"OTEL_EXPORTER_OTLP_PROTOCOL":                        "http/protobuf",
		"OTEL_EXPORTER_OTLP_CERTIFICATE":                     "/etc/ca.pem",
		"OTEL_SERVICE_NAME":                                  "mine",
		"OTEL_RESOURCE_ATTRIBUTES":                           "service.name=other,deployment.environment.name=test%20one,service.version=v9",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
	})
	r.one("ping")
	r.flush(t)
	if c.named("ping"); c.paths[0] != "POST /base/v1/traces?tenant=1" {
		t.Errorf("path %s", c.paths[0])
	}
	h := c.heads[0]
	if h.Get("Api-Key") != "a,b c+d" || h.Get("X-Second") != "2" || h.Get("Ignored") != "" || h.Get("Content-Encoding") != "gzip" {
		t.Errorf("headers %v", h)
	}
	if c.resource["service.name"] != "mine" || c.resource["service.version"] != "v9" || c.resource["deployment.environment.name"] != "test one" {
		t.Errorf("resource %v", c.resource)
	}
	text, n := r.log.text()
	if n != 3 || !strings.Contains(text, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf is not supported: JSON over HTTP") || !strings.Contains(text, "OTEL_EXPORTER_OTLP_CERTIFICATE is not supported") || !strings.Contains(text, "CAPTURE_MESSAGE_CONTENT is not supported") {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestSamplers(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"
	for _, test := range []struct {
		sampler, arg          string
		root, wanted, refused bool // whether a span is kept, by its parent
	}{
		{"", "", true, true, false},
		{"parentbased_always_on", "", true, true, false},
		{"parentbased_always_off", "", false, true, false},
		{"parentbased_traceidratio", "0", false, true, false},
		{"parentbased_traceidratio", "", true, true, false},
		{"always_on", "", true, true, true},
		{"ALWAYS_OFF", "", false, false, false},
		{"traceidratio", "1.0", true, true, true},
	} {
		c := collect(t, nil)
		env := at(c)
		env["OTEL_TRACES_SAMPLER"], env["OTEL_TRACES_SAMPLER_ARG"] = test.sampler, test.arg
		r := start(t, env)
		for method, meta := range map[string]map[string]any{"root": nil, "wanted": {"traceparent": parent + "1"}, "refused": {"traceparent": parent + "0"}} {
			ctx, end := r.Serve(context.Background(), telemetry.Op{Method: method}, meta)
			onward := map[string]any{}
			_, endCall := r.Call(ctx, telemetry.Op{Method: "onward"}, onward)
			endCall(nil)
			end(nil)
			kept := map[string]bool{"root": test.root, "wanted": test.wanted, "refused": test.refused}[method]
			if said, _ := onward["traceparent"].(string); strings.HasSuffix(said, "1") != kept { // 01, or 03 with the random flag
				t.Errorf("%s: %s passes %q on", test.sampler, method, said)
			}
		}
		r.flush(t)
		got := map[string]bool{}
		for _, s := range c.spans {
			got[s.Name] = true
		}
		if got["root"] != test.root || got["wanted"] != test.wanted || got["refused"] != test.refused {
			t.Errorf("%s %s: kept %v", test.sampler, test.arg, got)
		}
	}
}
