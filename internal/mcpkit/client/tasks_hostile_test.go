package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What a server can say of a task that is no answer.
func TestHostileTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	named := func(id string) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, m message) {
			plain(w, m.result(`{"resultType":"task","taskId":`+id+`,"status":"working"}`))
		}
	}
	says := func(status, rest string) func(http.ResponseWriter, message, int) {
		return func(w http.ResponseWriter, m message, _ int) { plain(w, state(m, status, rest)) }
	}
	gives := func(edit func(map[string]any)) func(http.ResponseWriter, message, int) {
		return func(w http.ResponseWriter, m message, _ int) {
			plain(w, state(m, "completed", `,"result":{"content":[],"structuredContent":`+wireResult(edit)+`}`))
		}
	}
	unread := "the researcher's answer cannot be read: "
	for name, tc := range map[string]struct {
		call      func(http.ResponseWriter, message)
		get       func(http.ResponseWriter, message, int)
		code      marchwarden.Code
		want      string // the beginning
		cancelled bool
	}{
		"id is a number":   {call: named("7"), code: marchwarden.CodeMalformed, want: unread + "it is a task without a name"},
		"id is an object":  {call: named(`{"a":[]}`), code: marchwarden.CodeMalformed, want: unread + "it is a task without a name"},
		"id is empty":      {call: named(`""`), code: marchwarden.CodeMalformed, want: unread + "it is a task without a name"},
		"id is null":       {call: named(`null`), code: marchwarden.CodeMalformed, want: unread + "it is a task without a name"},
		"id is long":       {call: named(quoted(strings.Repeat("x", maxTaskIDBytes+1))), code: marchwarden.CodeMalformed, want: unread + "it is a task with a name of more"},
		"id splits":        {call: named(`"a\r\nX-Evil: 1"`), code: marchwarden.CodeMalformed, want: unread + "it is a task with a name that cannot be sent back"},
		"id steers":        {call: named(`"\u001b[31m"`), code: marchwarden.CodeMalformed, want: unread + "it is a task with a name that cannot be sent back"},
		"no status":        {get: func(w http.ResponseWriter, m message, _ int) { plain(w, m.result(`{}`)) }, code: marchwarden.CodeMalformed, want: unread + "it is a task in no state", cancelled: true},
		"odd status":       {get: says("do\x1bne", ""), code: marchwarden.CodeMalformed, want: unread + "it is a task in no state", cancelled: true},
		"status is a list": {get: func(w http.ResponseWriter, m message, _ int) { plain(w, m.result(`{"status":["completed"]}`)) }, code: marchwarden.CodeMalformed, want: unread + "it is a task in no state", cancelled: true},
		"not an object":    {get: func(w http.ResponseWriter, m message, _ int) { plain(w, m.result(`[1]`)) }, code: marchwarden.CodeMalformed, want: unread, cancelled: true},
		"no JSON":          {get: func(w http.ResponseWriter, m message, _ int) { plain(w, "<html>") }, code: marchwarden.CodeMalformed, want: unread, cancelled: true},
		"a page": {get: func(w http.ResponseWriter, m message, _ int) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, code: marchwarden.CodeMalformed, want: unread + "its answer is neither", cancelled: true},
		"another task": {get: func(w http.ResponseWriter, m message, _ int) {
			plain(w, m.result(`{"taskId":"other","status":"working"}`))
		}, code: marchwarden.CodeMalformed, want: unread + "it is about another task", cancelled: true},
		"asks back":      {get: says("input_required", `,"inputRequests":{"a":{"method":"elicitation/create"}}`), code: marchwarden.CodeUnsupported, want: "the researcher wants to ask back, and this client cannot answer", cancelled: true},
		"fails":          {get: says("failed", `,"error":{"code":-32603,"message":"bo\u001b[31mom"}`), code: marchwarden.CodeUnavailable, want: "the researcher's task failed: bo[31mom (-32603)"},
		"fails silently": {get: says("failed", `,"error":"x"`), code: marchwarden.CodeUnavailable, want: "the researcher's task failed and it did not say why"},
		"gives up":       {get: says("cancelled", ""), code: marchwarden.CodeCanceled, want: "the researcher's task was cancelled on its side"},
		"tool error":     {get: says("completed", `,"result":{"isError":true,"content":[{"type":"text","text":"no money"}],"_meta":{"marchwarden/error":{"code":"exhausted"}}}`), code: marchwarden.CodeExhausted, want: "no money"},
		"no result":      {get: says("completed", ""), code: marchwarden.CodeMalformed, want: unread + "it is a task that is done and has no result"},
		"odd result":     {get: says("completed", `,"result":7`), code: marchwarden.CodeMalformed, want: unread},
		"task in a task": {get: says("completed", `,"result":{"resultType":"task","taskId":"x","status":"working"}`), code: marchwarden.CodeMalformed, want: "the researcher's result breaks the contract: there is no structured content"},
		"overconfident":  {get: gives(func(m map[string]any) { m["confidence"] = 1.5 }), code: marchwarden.CodeMalformed, want: "the researcher's result breaks the contract: "},
		"long": {get: gives(func(m map[string]any) { m["answer"] = strings.Repeat("x", maxStringBytes+1) }), code: marchwarden.CodeMalformed,
			want: "the researcher's result breaks the contract: result.answer has 262145 bytes, over 262144"},
		"huge": {get: says("completed", `,"result":"`+strings.Repeat("x", maxFrameBytes)+`"`), code: marchwarden.CodeMalformed,
			want: "the researcher sent a message of more than 16777216 bytes", cancelled: true},
		"huge event": {get: func(w http.ResponseWriter, m message, _ int) { stream(w, "data: "+strings.Repeat("x", maxFrameBytes)) }, code: marchwarden.CodeMalformed,
			want: "the researcher sent a message of more than 16777216 bytes", cancelled: true},
		"huge in pieces": {get: func(w http.ResponseWriter, m message, _ int) {
			stream(w, strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17))
		}, code: marchwarden.CodeMalformed,
			want: "the researcher sent a message of more than 16777216 bytes", cancelled: true},
		"huge in all": {get: func(w http.ResponseWriter, m message, _ int) {
			stream(w, strings.Repeat(strings.Repeat("x", 1<<20)+"\n\n", 65))
		}, code: marchwarden.CodeMalformed,
			want: "the researcher sent more than 67108864 bytes about one call", cancelled: true},
		"wordy": {get: func(w http.ResponseWriter, m message, n int) {
			working(w, m, fmt.Sprint(n, strings.Repeat("x", 15<<20)))
		}, code: marchwarden.CodeMalformed, want: "the researcher sent more than 67108864 bytes about one call", cancelled: true},
		"forgets":   {get: func(w http.ResponseWriter, m message, _ int) { plain(w, m.fault(-32602, "unknown task")) }, code: marchwarden.CodeNotFound, want: "the researcher does not know the task any more"},
		"not found": {get: func(w http.ResponseWriter, m message, _ int) { w.WriteHeader(404) }, code: marchwarden.CodeNotFound, want: "the researcher does not know the task any more"},
		"forgets, 404": {get: func(w http.ResponseWriter, m message, _ int) {
			w.WriteHeader(404)
			fmt.Fprint(w, m.fault(-32602, "gone"))
		}, code: marchwarden.CodeNotFound,
			want: "the researcher does not know the task any more"},
		"no method": {get: func(w http.ResponseWriter, m message, _ int) { plain(w, m.fault(-32601, "what?")) }, code: marchwarden.CodeUnsupported, want: "the researcher answered with a protocol error: what? (-32601)", cancelled: true},
		"refuses": {get: func(w http.ResponseWriter, m message, n int) {
			if n > 2 {
				w.WriteHeader(401)
				return
			}
			working(w, m, "x")
		}, code: marchwarden.CodeDenied, want: "the researcher refused access (status 401)", cancelled: true},
		"bad request":   {get: func(w http.ResponseWriter, m message, n int) { w.WriteHeader(400) }, code: marchwarden.CodeUnavailable, want: "the researcher could not be reached or understood: status 400", cancelled: true},
		"call refused":  {call: func(w http.ResponseWriter, m message) { w.WriteHeader(403) }, code: marchwarden.CodeDenied, want: "the researcher refused access (status 403)"},
		"call fails":    {call: func(w http.ResponseWriter, m message) { w.WriteHeader(503) }, code: marchwarden.CodeUnavailable, want: "the researcher could not be reached or understood: status 503"},
		"call breaks":   {call: func(w http.ResponseWriter, m message) { breakOff(w) }, code: marchwarden.CodeUnavailable, want: "the researcher could not be reached or understood: "},
		"call ends":     {call: func(w http.ResponseWriter, m message) { stream(w, "data: {\n\n: x") }, code: marchwarden.CodeMalformed, want: unread},
		"call half":     {call: func(w http.ResponseWriter, m message) { stream(w, `data: {"jsonrpc":"2.0"`) }, code: marchwarden.CodeUnavailable, want: "the researcher could not be reached or understood: it ended the answer"},
		"odd kind":      {call: func(w http.ResponseWriter, m message) { plain(w, m.result(`{"resultType":{"a":1},`+toolAnswer()[1:])) }, code: marchwarden.CodeMalformed, want: unread},
		"call protocol": {call: func(w http.ResponseWriter, m message) { plain(w, m.fault(-32000, "busy")) }, code: marchwarden.CodeUnavailable, want: "the researcher answered with a protocol error: busy (-32000)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{call: tc.call, get: tc.get}
			s := openOffice(t, o)
			s.cancelPatience = time.Minute
			res, err := s.Research(t.Context(), ask("q"), nil)
			if res != nil || !errors.Is(err, tc.code) || !strings.HasPrefix(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v, %v (%s), want %s: %s", res, err, marchwarden.CodeOf(err), tc.code, tc.want)
			}
			fit(t, err)
			s.Close()
			if got := len(o.of("tasks/cancel")) == 1; got != tc.cancelled {
				t.Errorf("the task was cancelled: %v, want %v", got, tc.cancelled)
			}
			for _, m := range o.of("tasks/cancel") {
				if m.Params.TaskID != taskName || m.header.Get("Mcp-Name") != taskName || !m.declares() {
					t.Errorf("it was cancelled with %+v", m)
				}
			}
		})
	}
}
