package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	published "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// TestNamesAreThePublishedOnes holds our constants against the package that is made
// from the conventions. It is in no binary: it is large.
func TestNamesAreThePublishedOnes(t *testing.T) {
	if schemaURL != published.SchemaURL {
		t.Errorf("schema %s, published %s", schemaURL, published.SchemaURL)
	}
	for _, pair := range [][2]attribute.Key{
		{keyErrorType, published.ErrorTypeKey},
		{keyOperation, published.GenAIOperationNameKey},
		{keyProvider, published.GenAIProviderNameKey},
		{keyRequestModel, published.GenAIRequestModelKey},
		{keyMaxTokens, published.GenAIRequestMaxTokensKey},
		{keyResponseModel, published.GenAIResponseModelKey},
		{keyFinishReasons, published.GenAIResponseFinishReasonsKey},
		{keyOutputType, published.GenAIOutputTypeKey},
		{keyInputTokens, published.GenAIUsageInputTokensKey},
		{keyOutputTokens, published.GenAIUsageOutputTokensKey},
		{keyCacheRead, published.GenAIUsageCacheReadInputTokensKey},
		{keyCacheWrite, published.GenAIUsageCacheCreationInputTokensKey},
		{keyAgent, published.GenAIAgentNameKey},
		{keyConversation, published.GenAIConversationIDKey},
		{keyTool, published.GenAIToolNameKey},
		{keyPrompt, published.GenAIPromptNameKey},
		{keyMethod, published.McpMethodNameKey},
		{keySession, published.McpSessionIDKey},
		{keyProtocol, published.McpProtocolVersionKey},
		{keyResource, published.McpResourceURIKey},
		{keyTransport, published.NetworkTransportKey},
		{keyNetworkProtocol, published.NetworkProtocolNameKey},
		{keyMessaging, published.MessagingSystemKey},
		{keyMessagingOp, published.MessagingOperationNameKey},
		{keyMessagingType, published.MessagingOperationTypeKey},
		{keyDestination, published.MessagingDestinationNameKey},
		{keyServiceName, published.ServiceNameKey},
		{keyServiceVersion, published.ServiceVersionKey},
		{keyTelemetryName, published.TelemetrySDKNameKey},
		{keyTelemetryLang, published.TelemetrySDKLanguageKey},
		{keyTelemetryVersion, published.TelemetrySDKVersionKey},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is published as %s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{opChat, published.GenAIOperationNameChat.Value.AsString()},
		{opInvokeAgent, published.GenAIOperationNameInvokeAgent.Value.AsString()},
		{opExecuteTool, published.GenAIOperationNameExecuteTool.Value.AsString()},
		{opProcess, published.MessagingOperationTypeProcess.Value.AsString()},
		{opSend, published.MessagingOperationTypeSend.Value.AsString()},
		{"pipe", published.NetworkTransportPipe.Value.AsString()},
		{"tcp", published.NetworkTransportTCP.Value.AsString()},
		{"json", published.GenAIOutputTypeJSON.Value.AsString()},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is published as %s", pair[0], pair[1])
		}
	}
}

func TestFormsOfResources(t *testing.T) {
	for uri, want := range map[string]string{
		"marchwarden://trace/0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10": "marchwarden://trace/{id}",
		"marchwarden://trace/{id}":                                 "marchwarden://trace/{id}",
		"marchwarden://result/x?y=z":                               "marchwarden://result/{id}",
		"marchwarden://evidence/sha256/00ff#f":                     "marchwarden://evidence/sha256/{hex}",
		"marchwarden://contract":                                   "marchwarden://contract",
		"marchwarden://secret/../a/b/c/d":                          "marchwarden://{uri}",
		"ui://marchwarden/result":                                  "ui://marchwarden/result",
		"https://example.org/?q=secret":                            "https://{uri}",
		"file:///home/someone":                                     "file://{uri}",
		"a secret://x":                                             "_OTHER",
		"secret":                                                   "_OTHER",
	} {
		if got := form(uri); got != want {
			t.Errorf("%s is told as %s, want %s", uri, got, want)
		}
	}
}

func TestSessionsAreToldApart(t *testing.T) {
	a, b := pseudonym("one"), pseudonym("two")
	if a == b || a != pseudonym("one") || strings.Contains(a, "one") || pseudonym("") != "" {
		t.Errorf("%s and %s", a, b)
	}
}

// kept keeps the spans that end.
type kept struct{ spans []sdktrace.ReadOnlySpan }

func (k *kept) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (k *kept) OnEnd(s sdktrace.ReadOnlySpan)                   { k.spans = append(k.spans, s) }
func (k *kept) Shutdown(context.Context) error                  { return nil }
func (k *kept) ForceFlush(context.Context) error                { return nil }

func TestLargeBatchesAreSplit(t *testing.T) {
	k := &kept{}
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(k))
	for range 100 {
		_, span := p.Tracer("x").Start(t.Context(), strings.Repeat("n", 1000))
		span.End()
	}
	bodies, err := encode(k.spans, nil, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range bodies {
		n += b.spans
		if len(b.raw) > 11_000 {
			t.Errorf("a body of %d bytes", len(b.raw))
		}
	}
	if n != 100 || len(bodies) < 11 {
		t.Errorf("%d spans in %d bodies", n, len(bodies))
	}
	if bodies, err := encode(k.spans[:1], nil, 10); len(bodies) != 1 || err != nil { // more than the limit by itself
		t.Errorf("%d bodies, %v", len(bodies), err)
	}
}

func TestPausesAreBounded(t *testing.T) {
	for attempt, most := range []time.Duration{1, 2, 4, 8, 8} {
		for range 100 {
			if d := backoff(attempt); d > most*time.Second || d < most*time.Second*3/4 {
				t.Fatalf("attempt %d waits %v", attempt, d)
			}
		}
	}
	if backoff(1000) > longestPause {
		t.Error("it overflows")
	}
}
