package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// canary is a secret of the settings: a value that stands nowhere else in the world,
// and a part in the middle of it that no other canary has.
type canary struct{ name, value, token string }

// canaries are one for every setting that is or may hold a secret. They have what
// spellings differ in.
var canaries = []canary{
	{"ANTHROPIC_API_KEY", "sk-ant-api03-+71/vK3qT9wz==", "vK3qT9wz"}, {"OPENAI_API_KEY", "sk-proj-Zr8mB2xJ&x<y>", "Zr8mB2xJ"}, {"OPENROUTER_API_KEY", "sk-or-v1-f4Hn6Lc0ffee", "f4Hn6Lc0"}, {"GEMINI_API_KEY", "AIzaSyW2p-Tn5Vd7Ks", "Tn5Vd7Ks"},
	{"TAVILY_API_KEY", "tvly-dev-pW5sD1gY-4711", "pW5sD1gY"}, {"BRAVE_API_KEY", "BSA7uR2eXkQ_0815-zz", "7uR2eXkQ"}, {"OPENALEX_API_KEY", "oa-G9bNj3aV+key/1", "G9bNj3aV"},
	{"SEMANTIC_SCHOLAR_API_KEY", "s2k-m1TcZ8oE.9876", "m1TcZ8oE"}, {"LAMPS_TOKEN", "lamps-y6FhW4iS~token", "y6FhW4iS"}, {"token of a login", "login-K4wSe9mD~token", "K4wSe9mD"},
	{"password of SEARXNG_URL", "searx-B3kPq7nU:p@ss", "B3kPq7nU"}, {"password of WIKIPEDIA_URL", "wiki-x8LdR5vG-7", "x8LdR5vG"}, {"password of ARXIV_URL", "arxiv-J2zMt6cO-8", "J2zMt6cO"},
	{"password of CROSSREF_URL", "cross-a9EwH3yK-9", "a9EwH3yK"}, {"password of MARCHWARDEN_DB", "db-N5gXs1bQ%/?#x", "N5gXs1bQ"}, {"password of OLLAMA_HOST", "olla-r7VjC4uT-10", "r7VjC4uT"},
}

func canaryOf(name string) string {
	return canaries[slices.IndexFunc(canaries, func(c canary) bool { return c.name == name })].value
}

// spelt are the ways in which a careless or curious service repeats a value.
func spelt(v string) []string {
	quoted, _ := json.Marshal(v) // a string always marshals
	escaped := ""
	for _, r := range v {
		escaped += fmt.Sprintf(`\u%04x`, r)
	}
	out := []string{v, url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`), html.EscapeString(v), hex.EncodeToString([]byte(v)), escaped}
	for _, before := range []string{"", "x", "xy"} {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			out = append(out, enc.EncodeToString([]byte(before+v+"~~~")))
		}
	}
	return out
}

// marks are what must be found nowhere: the token, which is in every part of the
// canary that is worth anything, in every spelling.
func (c canary) marks() [][]byte {
	token := c.token
	out := [][]byte{[]byte(token), []byte(hex.EncodeToString([]byte(token))), []byte(strings.ToUpper(hex.EncodeToString([]byte(token))))}
	escaped, percent := "", ""
	for i := range len(token) {
		escaped += fmt.Sprintf(`\u%04x`, token[i])
		percent += fmt.Sprintf("%%%02x", token[i])
	}
	out = append(out, []byte(escaped), []byte(percent))
	for before := range 3 {
		all := base64.StdEncoding.EncodeToString([]byte("~~"[:before] + token)) // it has neither + nor /
		out = append(out, []byte(all[(8*before+5)/6:8*(before+len(token))/6]))
	}
	return out
}

// echo is an internet that gives back whatever it is sent: services, pages, models,
// an MCP server and a database, each in every way to fail. The path of a request is
// /MODE/SERVICE/….
type echo struct {
	url    string
	db     string // host and port
	models http.Handler

	mu   sync.Mutex // guards loot
	loot []sent     // every secret that was sent
}

// sent is a secret and the service that got it.
type sent struct{ service, value string }

// modes are the ways to answer. The first few show most.
var modes = []string{"good", "status401", "badjson", "status500", "status403", "status429", "status400", "status402", "page500", "page200", "text500", "elsewhere", "around", "cut", "empty", "stream"}

func newEcho(t *testing.T) *echo {
	e := &echo{}
	models := llmtest.NewServer(t, e.think)
	at, err := url.Parse(models.URL())
	if err != nil {
		t.Fatal(err)
	}
	e.models = httputil.NewSingleHostReverseProxy(at)
	server := httptest.NewServer(e)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	e.url = server.URL
	e.db = e.postgres(t)
	return e
}

// see notes what a request carries.
func (e *echo) see(service string, texts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range texts {
		for _, c := range canaries {
			if s := (sent{service, c.value}); strings.Contains(text, c.value) && !slices.Contains(e.loot, s) {
				e.loot = append(e.loot, s)
			}
		}
	}
}

func (e *echo) seen(v string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.loot, func(s sent) bool { return s.value == v })
}

// words is all that a service was ever sent, in every spelling, as a sentence; for ""
// all that any service was.
func (e *echo) words(service string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, s := range e.loot {
		if service == "" || service == s.service {
			all = append(all, spelt(s.value)...)
		}
	}
	return "The CRISPR gene therapy startup said " + strings.Join(all, " and ") + "."
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what did not come is not echoed
	_ = r.ParseForm()
	_, password, _ := r.BasicAuth()
	said := []string{string(body), password, r.URL.Query().Get("api_key")}
	for _, values := range r.Header {
		said = append(said, values...)
	}
	mode, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	service, _, _ := strings.Cut(rest, "/")
	e.see(service, said...)
	text := fmt.Sprintf("api key %s was refused; you sent %s to %s: %s", strings.Join(said, " "), fmt.Sprint(r.Header), r.URL, body) + e.words("")
	switch mode {
	case "robots.txt":
		http.Error(w, text, http.StatusNotFound)
		return
	case "good":
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		e.answer(w, r, service, body)
		return
	}
	e.fail(w, r, mode, text)
}

// fail answers in one of the ways to fail.
func (e *echo) fail(w http.ResponseWriter, r *http.Request, mode, text string) {
	inJSON, _ := json.Marshal(map[string]any{"error": map[string]string{"message": text, "type": text, "code": text, "param": text}, "detail": text})
	page := "<!doctype html><html><head><title>" + html.EscapeString(text) + "</title></head><body><p>" + html.EscapeString(text) + "</p></body></html>"
	say := func(status int, kind, body string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that went away is its own affair
	}
	var status int
	switch _, _ = fmt.Sscanf(mode, "status%d", &status); {
	case status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "3600")
		say(status, "application/json", string(inJSON))
	case status > 0:
		say(status, "application/json", string(inJSON))
	case mode == "page500":
		say(500, "text/html; charset=utf-8", page)
	case mode == "page200":
		say(200, "text/html; charset=utf-8", page)
	case mode == "text500":
		say(500, "text/plain", text)
	case mode == "elsewhere":
		w.Header().Set("Location", "http://127.0.0.1:1/?key="+url.QueryEscape(text))
		say(302, "text/plain", text)
	case mode == "around":
		w.Header().Set("Location", r.URL.Path+"?key="+url.QueryEscape(strings.Join(spelt(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")), "")))
		say(307, "text/plain", text)
	case mode == "badjson":
		say(200, "application/json", `{"results": [{"title": "`+text+`", "web": `)
	case mode == "stream":
		say(200, "text/event-stream", "event: error\ndata: "+string(inJSON)+"\n\n")
	case mode == "empty":
		say(200, "application/json", "{}")
	default: // cut
		w.Header().Set("Content-Length", "1000000")
		say(200, "text/event-stream", "data: "+string(inJSON))
	}
}

// answer is what the service would say, with all it knows.
func (e *echo) answer(w http.ResponseWriter, r *http.Request, service string, body []byte) {
	words := e.words("")
	link := e.url + "/good/page/1?k=" + url.QueryEscape(words[:strings.Index(words+" and ", " and ")])
	in := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a client that went away is its own affair
	}
	type fields map[string]any
	hit := fields{"title": "CRISPR " + words, "url": link, "content": words, "description": words, "snippet": words, "score": 0.9}
	clean := fields{"title": "CRISPR gene therapy startups", "url": e.url + "/good/page/2", "content": words, "description": words, "score": 0.8}
	switch service {
	case "anthropic", "openai", "ollama":
		e.models.ServeHTTP(w, r)
	case "tavily", "searxng":
		in(fields{"results": []fields{hit, clean}})
	case "brave":
		in(fields{"type": "search", "web": fields{"results": []fields{hit, clean}}})
	case "wikipedia":
		in(fields{"query": fields{"search": []fields{hit}}})
	case "openalex":
		in(fields{"meta": fields{}, "results": []fields{{"id": "https://openalex.org/W1", "doi": "https://doi.org/10.1/" + "x", "title": words, "display_name": words,
			"abstract_inverted_index": fields{words: []int{0}}, "authorships": []fields{{"raw_author_name": words}}}}})
	case "crossref":
		in(fields{"message": fields{"title": []string{words}, "DOI": "10.1/x", "abstract": words}})
	case "scholar":
		in(fields{"paperId": "1", "title": words, "abstract": words})
	case "arxiv":
		w.Header().Set("Content-Type", "application/atom+xml")
		text := html.EscapeString(words)
		fmt.Fprintf(w, `<?xml version='1.0'?><feed xmlns="http://www.w3.org/2005/Atom"><title>q</title><entry><id>http://arxiv.org/abs/2101.00007v3</id><title>CRISPR %s</title><summary>%s</summary>`+
			`<published>2021-01-04T00:00:00Z</published><updated>2023-08-02T00:00:00Z</updated><author><name>%s</name></author></entry></feed>`, text, text, text)
	case "lamps":
		e.mcp(w, body, words)
	default: // a page, whose server has never seen a key but is a friend of one that has
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		words = e.words("")
		w.Header().Set("ETag", `"`+strings.ReplaceAll(words, `"`, "")+`"`)
		text := html.EscapeString(words)
		title := text
		fmt.Fprintf(w, `<!doctype html><html lang=en><head><title>%s</title><meta name=author content="%s"></head><body><article><h1>%s</h1><p>%s</p><p>Nova Edit is a startup that works on CRISPR gene therapy.</p>`+
			`<p>%s</p><a href="/good/page/3?k=%s">more</a></article></body></html>`, title, title, title, text, strings.Repeat("The remaining sections describe the setting of the study in the usual order. ", 20), url.QueryEscape(words))
	}
}

// think is a model that repeats its key, in pieces as a stream has them, in text, in
// the calls of tools and in its own name.
func (e *echo) think(turn llmtest.Turn) llmtest.Said {
	said := webtest.Obedient(turn)
	words := e.words("")
	switch webtest.SiteOf(turn) {
	case webtest.SiteStep:
		if turn.Wire == llmtest.WireOpenAI && turn.Model == "gpt-papers" && len(said.Calls) > 0 { // arXiv wants three seconds between searches
			said.Calls = []llm.ToolCall{webtest.SearchFor("crispr " + words), webtest.Tool(words, map[string]string{words: words})}
		} else if len(said.Calls) > 0 {
			said.Calls = append(said.Calls, webtest.SearchFor("crispr "+words), webtest.SearchFor(canaryOf("ANTHROPIC_API_KEY")), webtest.Tool(words, map[string]string{words: words}))
			said.Calls = append(said.Calls, llm.ToolCall{Name: "search", Input: json.RawMessage(`{"query":"` + words + `"`)})
		} else {
			said.Text += words
		}
	case webtest.SiteWrite, webtest.SiteRepair:
		var draft map[string]any
		if json.Unmarshal([]byte(said.Text), &draft) == nil {
			draft["gaps"] = []any{map[string]string{"topic": words, "detail": words, "category": "source_not_found"}}
			draft["open_questions"] = []any{map[string]string{"question": words, "context": words, "priority": "high"}}
			draft["discoveries"] = []any{map[string]string{"type": "related_research", "query": words, "reason": words, "suggested_researcher": "web"}}
			if b, err := json.Marshal(draft); err == nil {
				said.Text = string(b)
			}
		}
	default:
		said.Text += " " + words
	}
	return said
}

// mcp is an external researcher over HTTP, which tells every caller its token.
func (e *echo) mcp(w http.ResponseWriter, body []byte, words string) {
	var ask struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(body, &ask) != nil || len(ask.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	type fields map[string]any
	reply := fields{"jsonrpc": "2.0", "id": ask.ID}
	switch ask.Method {
	case "initialize":
		reply["result"] = fields{"protocolVersion": "2025-06-18", "capabilities": fields{"tools": fields{}}, "serverInfo": fields{"name": words, "version": words}}
	case "tools/list":
		reply["result"] = fields{"tools": []fields{{"name": "research", "description": "lamps " + words, "inputSchema": fields{"type": "object", "properties": fields{"question": fields{"type": "string"}}}}}}
	case "tools/call":
		fact := "The harbour lamp of Port Ellery said " + words
		res := fields{
			"answer": fact + " [1]", "confidence": 0.8, "trace_id": "0198c0de-0000-7000-8000-000000000001",
			"citations":          []fields{{"source": "file", "locator": "lamps.txt?" + words, "title": words, "raw_excerpt": fact, "confidence": 0.8}},
			"gaps":               []fields{{"topic": words, "category": "source_not_found", "detail": words}},
			"discovery_events":   []fields{{"type": "related_research", "suggested_researcher": "files", "query": words, "reason": words, "source_locator": words}},
			"open_questions":     []fields{{"question": words, "context": words, "priority": "high", "source_locator": words}},
			"confidence_factors": fields{"num_corroborating_sources": 1, "source_authority": "low", "contradiction_detected": false, "query_specificity_match": 0.8, "budget_exhausted": false},
			"cost_metadata":      fields{"tokens_used": 1, "iterations_run": 1, "wall_time_sec": 0.1, "budget_exhausted": false, "model_id": words},
		}
		text, _ := json.Marshal(res) // it marshals
		reply["result"] = fields{"content": []fields{{"type": "text", "text": string(text)}}, "structuredContent": res}
	default:
		reply["error"] = fields{"code": -32601, "message": words}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // a client that went away is its own affair
}

// postgres is a database that asks for the password in clear, and repeats it.
func (e *echo) postgres(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.login(conn)
		}
	}()
	return l.Addr().String()
}

func (e *echo) login(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // who is slower is gone
	packet := func(kind int) []byte {
		head := make([]byte, 4+kind)
		if _, err := io.ReadFull(conn, head); err != nil {
			return nil
		}
		body := make([]byte, max(0, int(binary.BigEndian.Uint32(head[kind:]))-4))
		if _, err := io.ReadFull(conn, body); err != nil {
			return nil
		}
		return body
	}
	first := packet(0)
	if len(first) == 4 { // it asks for encryption
		_, _ = conn.Write([]byte("N"))
		first = packet(0)
	}
	_, _ = conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3})
	password := string(packet(1))
	e.see("postgres", password)
	fault := "SFATAL\x00VFATAL\x00C28P01\x00Mthe password " + password + " is wrong, " + e.words("postgres") + "\x00D" + password + "\x00\x00"
	_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(fault)+4)), fault...))
	_ = first
}
