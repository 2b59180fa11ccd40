package llmtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Wire is the protocol of a provider.
type Wire string

// The wires that a Server speaks.
const (
	WireAnthropic Wire = "anthropic" // POST /v1/messages
	WireOpenAI    Wire = "openai"    // POST /v1/chat/completions
)

// Turn is one request to a Server, as it came in.
type Turn struct {
	Wire      Wire
	Model     string
	System    string // all system and developer texts
	Input     string // all other texts
	MaxTokens int
	Tools     []string // names, in the order offered
	HasSchema bool     // a JSON Schema for the reply is set
	Streaming bool
	Header    http.Header
	N         int    // the number of the turn on this server, from 1
	Body      []byte // the request itself
}

// Said is what a Server answers to one Turn.
type Said struct {
	Text  string
	Calls []llm.ToolCall
	// Stop is why the model stops; zero stands for StopTools when there are Calls
	// and for StopEnd otherwise.
	Stop llm.Stop
	// Usage is what the provider reports; nil stands for what the sizes suggest,
	// always below llm.Estimate and never more output than MaxTokens.
	Usage *llm.Usage
	// Delay passes after the stream has opened and before its first content.
	Delay time.Duration
	// Half, if set, is called when half of a stream is out, and holds the rest up until it returns.
	Half func()
	// Fault goes wrong.
	Fault Fault
}

// Server is a provider on the loopback. It is safe for concurrent use.
type Server struct {
	srv    *httptest.Server
	answer func(Turn) Said
	done   chan struct{} // closed when the test ends

	mu       sync.Mutex // guards what follows
	turns    []Turn
	canceled int
}

// NewServer starts a provider that speaks all wires, streaming and not, and asks
// answer what to say. answer is called by as many goroutines as there are requests.
// The end of the test closes the server. A request that the real provider would
// refuse as such is answered with 400 and is no Turn. The path of a base URL does
// not matter: what counts is how the path ends.
func NewServer(t testing.TB, answer func(Turn) Said) *Server {
	t.Helper()
	s := &Server{answer: answer, done: make(chan struct{})}
	s.srv = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.srv.CloseClientConnections()
		s.srv.Close()
	})
	return s
}

// URL is the base address, without a path.
func (s *Server) URL() string { return s.srv.URL }

// Turns are the requests so far, in the order of their arrival.
func (s *Server) Turns() []Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Turn(nil), s.turns...)
}

// Canceled counts the requests whose client went away before the answer ended.
func (s *Server) Canceled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.canceled
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away before it had asked
	}
	wire := WireOpenAI
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	case strings.HasSuffix(r.URL.Path, "/messages/count_tokens"):
		countTokens(w, body)
		return
	case strings.HasSuffix(r.URL.Path, "/messages"):
		wire = WireAnthropic
	case !strings.HasSuffix(r.URL.Path, "/chat/completions"):
		http.NotFound(w, r)
		return
	}
	speak := dialects[wire]
	q, complaint := parse(wire, r.Header, body)
	if complaint != "" {
		fail(w, speak, failure{status: http.StatusBadRequest, kind: "invalid_request_error", message: complaint})
		return
	}
	turn := s.note(Turn{
		Wire: wire, Model: q.Model, System: q.system, Input: q.input, MaxTokens: q.limit(), Tools: q.tools,
		HasSchema: q.schema, Streaming: q.Stream, Header: r.Header.Clone(), Body: body,
	})
	said := s.answer(turn)
	p := play{s: s, w: w, r: r, speak: speak, said: said, reply: shape(turn, said, q.StreamOptions.IncludeUsage), streaming: q.Stream}
	if p.run() {
		s.mu.Lock()
		s.canceled++
		s.mu.Unlock()
	}
}

func (s *Server) note(t Turn) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.N = len(s.turns) + 1
	s.turns = append(s.turns, t)
	return t
}

func countTokens(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"input_tokens":`+strconv.Itoa((len(body)+3)/4)+`}`) // a client that is gone needs no answer
}

func fail(w http.ResponseWriter, d *dialect, f failure) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Request-Id", "req_011test")
	if f.retryAfter != "" {
		h.Set("Retry-After", f.retryAfter)
	}
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, d.failure(f)) // a client that is gone needs no answer
}

// play is one answer on its way out.
type play struct {
	s         *Server
	w         http.ResponseWriter
	r         *http.Request
	speak     *dialect
	said      Said
	reply     reply
	streaming bool
}

// run writes the answer and reports whether the client went away before its end.
func (p *play) run() (gone bool) {
	f := p.said.Fault
	if bad, ok := p.speak.faults[f]; ok {
		if f == FaultDenied { // a provider may well repeat the key
			bad.message += ": " + p.r.Header.Get("X-Api-Key") + strings.TrimPrefix(p.r.Header.Get("Authorization"), "Bearer ")
		}
		if p.wait(p.said.Delay) {
			return true
		}
		fail(p.w, p.speak, bad)
		return false
	}
	switch f {
	case FaultRefused:
		p.reset()
		return false
	case FaultHTML:
		p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		return !p.write("<!DOCTYPE html>\n<html><head><title>Welcome to the hotel</title></head>\n<body><h1>Please log in</h1>\n\n<p>data: free of charge</p>\n\n</body></html>\n")
	}
	if !p.streaming {
		return p.runBody()
	}
	return p.runStream()
}

func (p *play) runBody() (gone bool) {
	p.w.Header().Set("Content-Type", "application/json")
	body := p.speak.body(p.reply)
	switch p.said.Fault {
	case FaultStall, FaultPings:
		return !p.write("") || p.wait(time.Hour)
	case FaultErrorEvent: // a reply in one piece has no middle
		fail(p.w, p.speak, p.speak.faults[FaultOverloaded])
		return false
	case FaultCut, FaultCutJSON:
		return !p.write(body[:len(body)/2])
	case FaultReset:
		p.write(body[:len(body)/2])
		p.reset()
		return false
	case FaultFlood:
		return !p.write(`{"padding":"`) || p.flood(strings.Repeat("flood ", 10_000))
	}
	return p.wait(p.said.Delay) || !p.write(body)
}

func (p *play) runStream() (gone bool) {
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	if p.said.Fault == FaultStall {
		return !p.write("") || p.wait(time.Hour)
	}
	if p.said.Fault == FaultFlood {
		p.reply.text = strings.Repeat("flood ", 1<<19)
	}
	st := p.speak.stream(p.reply)
	if p.send(st.events[:st.lead]) || p.wait(p.said.Delay) {
		return true
	}
	half := st.lead + (len(st.events)-st.lead)/2
	switch p.said.Fault {
	case FaultPings:
		for !p.wait(20 * time.Millisecond) {
			if p.send([]event{p.speak.ping}) {
				return true
			}
			select {
			case <-p.s.done:
				return false
			default:
			}
		}
		return true
	case FaultCut:
		return p.send(st.events[st.lead:half])
	case FaultCutJSON:
		return p.send(append(st.events[st.lead:half:half], p.speak.cut))
	case FaultErrorEvent:
		return p.send(append(st.events[st.lead:half:half], p.speak.broken))
	case FaultReset:
		if p.send(st.events[st.lead:half]) || p.wait(10*time.Millisecond) {
			return true
		}
		p.reset()
		return false
	case FaultFlood:
		return p.send(st.events[st.lead:half]) || p.flood(string(st.events[half])+"\n\n")
	}
	if p.said.Half != nil {
		if p.send(st.events[st.lead:half]) {
			return true
		}
		p.said.Half()
		return p.send(st.events[half:])
	}
	return p.send(st.events[st.lead:])
}

// send writes events one by one and reports whether the client went away.
func (p *play) send(events []event) (gone bool) {
	for _, e := range events {
		if !p.write(string(e) + "\n\n") {
			return true
		}
	}
	return false
}

// flood repeats a text up to 500 MiB and reports whether the client went away.
func (p *play) flood(s string) (gone bool) {
	for n := 0; n < 500<<20; n += len(s) {
		if !p.write(s) {
			return true
		}
	}
	return false
}

// write sends a text at once and reports whether the client is still there.
func (p *play) write(s string) bool {
	if p.r.Context().Err() != nil {
		return false
	}
	if _, err := io.WriteString(p.w, s); err != nil {
		return false
	}
	return http.NewResponseController(p.w).Flush() == nil
}

// wait lets time pass and reports whether the client went away meanwhile. The end
// of the test ends it.
func (p *play) wait(d time.Duration) (gone bool) {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-p.s.done:
		return false
	case <-p.r.Context().Done():
		return true
	}
}

// reset ends the connection with an RST instead of an end.
func (p *play) reset() {
	conn, _, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		return // the connection is gone already
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed in order, which is a fault as well
	}
	_ = conn.Close() // nothing was to be kept
}
