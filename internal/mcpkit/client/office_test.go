package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// office is a server at an address, written by hand; it makes the answers to tools/call.
type office func(w http.ResponseWriter, m message)

// message is a request as the office got it.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta      map[string]any `json:"_meta"`
		Responses map[string]any `json:"inputResponses"`
		State     string         `json:"requestState"`
	}
}

func (m message) result(result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (o office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch m.Method {
	case "server/discover":
		plain(w, m.result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`))
	case "tools/list":
		plain(w, m.result(`{"resultType":"complete","tools":[{"name":"research","inputSchema":{"type":"object","properties":{"question":{"type":"string"}}}}]}`))
	case "tools/call":
		o(w, m)
	}
}

// plain answers with JSON, stream with events.
func plain(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

func stream(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	fmt.Fprint(w, body)
	w.(http.Flusher).Flush()
}

func toolAnswer() string { return `{"content":[],"structuredContent":` + wireResult(nil) + `}` }

// What a server at an address answers, in whatever form, is understood, and its progress is
// heard before the answer.
func TestAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	note := func(m message, words string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + quoted(fmt.Sprint(m.Params.Meta["progressToken"])) + `,"progress":1,"message":` + quoted(words) + `}}`
	}
	for name, call := range map[string]office{
		"json":   func(w http.ResponseWriter, m message) { plain(w, m.result(toolAnswer())) },
		"events": func(w http.ResponseWriter, m message) { stream(w, "data: "+m.result(toolAnswer())+"\n\n") },
		"progress before": func(w http.ResponseWriter, m message) {
			stream(w, ": hello\n\nid: 1\nretry: 5\ndata:\n\nevent: message\ndata: "+note(m, "reading"))
			stream(w, "\n\ndata: "+m.result(toolAnswer())+"\n\n")
		},
		"many at once": func(w http.ResponseWriter, m message) {
			stream(w, strings.Repeat("data: "+note(m, "reading")+"\r\n\r\n", 100)+"data: "+m.result(toolAnswer())+"\r\n\r\n")
		},
		"another's answer": func(w http.ResponseWriter, m message) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\ndata: "+m.result(toolAnswer())+"\n\n")
		},
		"asks first": func(w http.ResponseWriter, m message) {
			if m.Params.State != "s1" || fmt.Sprint(m.Params.Responses) != "map[a:map[action:decline]]" {
				plain(w, m.result(`{"resultType":"input_required","requestState":"s1","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}}}}`))
				return
			}
			plain(w, m.result(toolAnswer()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(call)
			t.Cleanup(web.Close)
			s := open(t, Target{URL: web.URL})
			var events []marchwarden.Event
			res, err := s.Research(t.Context(), ask("q"), func(e marchwarden.Event) { events = append(events, e) })
			if err != nil || res.Answer != "Paris. [1]" {
				t.Errorf("got %v, %v", res, err)
			}
			if want := map[string]int{"progress before": 1, "many at once": 100}[name]; len(events) != want || want > 0 && events[0].Message != "reading" {
				t.Errorf("got %d events, want %d", len(events), want)
			}
		})
	}
}
