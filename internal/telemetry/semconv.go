package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// The names are those of the OpenTelemetry semantic conventions 1.41.0, the last
// published version that has GenAI and MCP. The conventions have since moved to a
// repository of their own, which has published nothing yet; its working version,
// gen-ai-dev 1.42.0-dev, has the same names. All are of the status "development".
const (
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"
	scopeName = "marchwarden"
)

// Keys of the conventions.
const (
	keyErrorType        = attribute.Key("error.type")
	keyOperation        = attribute.Key("gen_ai.operation.name")
	keyProvider         = attribute.Key("gen_ai.provider.name")
	keyRequestModel     = attribute.Key("gen_ai.request.model")
	keyMaxTokens        = attribute.Key("gen_ai.request.max_tokens")
	keyResponseModel    = attribute.Key("gen_ai.response.model")
	keyFinishReasons    = attribute.Key("gen_ai.response.finish_reasons")
	keyOutputType       = attribute.Key("gen_ai.output.type")
	keyInputTokens      = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens     = attribute.Key("gen_ai.usage.output_tokens")
	keyCacheRead        = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyCacheWrite       = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	keyAgent            = attribute.Key("gen_ai.agent.name")
	keyConversation     = attribute.Key("gen_ai.conversation.id")
	keyTool             = attribute.Key("gen_ai.tool.name")
	keyPrompt           = attribute.Key("gen_ai.prompt.name")
	keyMethod           = attribute.Key("mcp.method.name")
	keySession          = attribute.Key("mcp.session.id")
	keyProtocol         = attribute.Key("mcp.protocol.version")
	keyResource         = attribute.Key("mcp.resource.uri")
	keyTransport        = attribute.Key("network.transport")
	keyNetworkProtocol  = attribute.Key("network.protocol.name")
	keyMessaging        = attribute.Key("messaging.system")
	keyMessagingOp      = attribute.Key("messaging.operation.name")
	keyMessagingType    = attribute.Key("messaging.operation.type")
	keyDestination      = attribute.Key("messaging.destination.name")
	keyServiceName      = attribute.Key("service.name")
	keyServiceVersion   = attribute.Key("service.version")
	keyTelemetryName    = attribute.Key("telemetry.sdk.name")
	keyTelemetryLang    = attribute.Key("telemetry.sdk.language")
	keyTelemetryVersion = attribute.Key("telemetry.sdk.version")
)

// Keys of our own, for what the conventions have no name for.
const (
	keyOwnPrompt     = attribute.Key("marchwarden.prompt") // the name of a prompt, never its text
	keyOwnAttempt    = attribute.Key("marchwarden.attempt")
	keyStoodIn       = attribute.Key("marchwarden.stood_in") // another model answered
	keyDepth         = attribute.Key("marchwarden.depth")
	keyResumed       = attribute.Key("marchwarden.resumed")
	keyCitations     = attribute.Key("marchwarden.citations")
	keyGaps          = attribute.Key("marchwarden.gaps")
	keyOpenQuestions = attribute.Key("marchwarden.open_questions")
	keyJourneys      = attribute.Key("marchwarden.rihlas")
	keyConfidence    = attribute.Key("marchwarden.confidence")
	keyTokens        = attribute.Key("marchwarden.tokens_used")
	keyIterations    = attribute.Key("marchwarden.iterations")
	keySources       = attribute.Key("marchwarden.sources_read")
	keyExhausted     = attribute.Key("marchwarden.budget_exhausted")
)

// Values of the conventions.
const (
	opChat        = "chat"
	opInvokeAgent = "invoke_agent"
	opExecuteTool = "execute_tool"
	opProcess     = "process"
	opSend        = "send"

	ownAgent = "marchwarden"
	unnamed  = "_OTHER" // stands for a name that is none
)

// provider splits a model's id into the name of the provider, which is the conventions'
// where they have one, and the name of the model.
func provider(id string) (who, model string) {
	who, model, ok := strings.Cut(id, "/")
	if !ok {
		return unnamed, name(id)
	}
	return name(who), name(model)
}

// maxName is the longest name that is taken for one.
const maxName = 96

// name is s where that can be the name of a method, a tool, a model or a request, and
// unnamed otherwise: such words come from the peer, who may write a sentence there.
func name(s string) string {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@+-$"
	if s == "" || len(s) > maxName || strings.Trim(s, allowed) != "" {
		return unnamed
	}
	return s
}
