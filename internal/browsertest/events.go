package browsertest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Message is what a page said in its console, or what the browser said there about it.
type Message struct {
	// Kind is exception for what a script threw and did not catch; the name of the function for what scripts say by console (log, warning, error and so on); and for
	// what the browser says, its source and level, as security:error for a breach of the content security policy, and network:error.
	Kind string
	Text string
	URL  string // of the script or document; "" when unknown
	Line int    // from one; 0 when unknown
}

// String is the message on one line.
func (m Message) String() string {
	s := m.Kind + ": " + m.Text
	if m.URL != "" {
		s += fmt.Sprintf(" (%s:%d)", m.URL, m.Line)
	}
	return s
}

// Bad tells whether something went wrong: errors, warnings, failed assertions and exceptions of any source.
func (m Message) Bad() bool {
	_, level, _ := strings.Cut(m.Kind, ":")
	switch m.Kind {
	case "exception", "error", "warning", "assert":
		return true
	}
	return level == "error" || level == "warning"
}

// Dialog is a box that a page opened and waited for. It was dismissed, unless Accept said otherwise or it asked whether the page may be left.
type Dialog struct {
	Kind string // alert, confirm, prompt, beforeunload
	Text string
}

// happened is what events say, as far as it is read here. The names are those of the protocol; no two events mean different things by one.
type happened struct {
	SessionID string `json:"sessionId"` // Target: of what was attached or went away
	Type      string `json:"type"`
	Message   string `json:"message"`
	FrameID   string `json:"frameId"`
	LoaderID  string `json:"loaderId"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	Frame     struct {
		ID       string `json:"id"`
		Parent   string `json:"parentId"`
		LoaderID string `json:"loaderId"`
		URL      string `json:"url"`
		Fragment string `json:"urlFragment"`
	} `json:"frame"`
	Args      []object   `json:"args"`
	Exception *exception `json:"exceptionDetails"`
	Entry     struct {
		Source string `json:"source"`
		Level  string `json:"level"`
		Text   string `json:"text"`
		URL    string `json:"url"`
		Line   int    `json:"lineNumber"`
	} `json:"entry"`
	Stack struct {
		Calls []struct {
			URL  string `json:"url"`
			Line int    `json:"lineNumber"`
		} `json:"callFrames"`
	} `json:"stackTrace"`
	traffic
	download
}

// object is a value of a page's script.
type object struct {
	Type        string          `json:"type"`
	Value       json.RawMessage `json:"value"`
	Description string          `json:"description"`
	Number      string          `json:"unserializableValue"` // NaN and its like
}

func (o object) String() string {
	var text string
	switch {
	case len(o.Value) > 0 && o.Value[0] == '"' && json.Unmarshal(o.Value, &text) == nil:
		return text
	case len(o.Value) > 0:
		return string(o.Value)
	case o.Number != "":
		return o.Number
	case o.Description != "":
		return o.Description
	}
	return o.Type
}

// exception is what a script threw.
type exception struct {
	Text   string  `json:"text"`
	URL    string  `json:"url"`
	Line   int     `json:"lineNumber"`
	Thrown *object `json:"exception"`
}

func (e *exception) Error() string {
	if e.Thrown != nil {
		return strings.TrimSpace(e.Text + " " + e.Thrown.String())
	}
	return e.Text
}

// event takes note of what the browser tells. It is called by the one goroutine that reads, so it never waits for an answer.
func (b *Browser) event(m message) {
	var h happened
	if err := json.Unmarshal(m.Params, &h); err != nil {
		return // an event of an unknown form
	}
	b.mu.Lock()
	p := b.pages[m.Session]
	if p == nil {
		p = b.frames[h.FrameID]
	}
	if p != nil && m.Method == "Target.attachedToTarget" {
		b.pages[h.SessionID] = p
	}
	b.mu.Unlock()
	if p == nil {
		if h.GUID != "" { // the progress of a download does not say whose it is
			b.everyPage(func(p *Page) { p.progress(&h) })
		}
		return
	}
	switch m.Method {
	case "Target.attachedToTarget":
		// It waits until its requests are told too. Not all kinds have both domains, which is no fault.
		for _, method := range []string{"Network.enable", "Runtime.enable", "Log.enable", "Inspector.enable"} {
			_, _ = b.send(h.SessionID, method, nil, nil)
		}
		_, _ = b.send(h.SessionID, "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}, nil)
		_, _ = b.send(h.SessionID, "Runtime.runIfWaitingForDebugger", nil, nil)
	case "Page.javascriptDialogOpening":
		p.mu.Lock()
		accept := p.accept || h.Type == "beforeunload"
		p.mu.Unlock()
		_, _ = b.send(m.Session, "Page.handleJavaScriptDialog", params{"accept": accept}, nil) // the page waits for it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(m.Session, m.Method, &h)
	close(p.changed)
	p.changed = make(chan struct{})
}

// everyPage calls f for each page once, with its lock held, and has those who wait look again.
func (b *Browser) everyPage(f func(*Page)) {
	b.mu.Lock()
	all := make([]*Page, 0, len(b.frames))
	for _, p := range b.frames {
		all = append(all, p)
	}
	b.mu.Unlock()
	for _, p := range all {
		p.mu.Lock()
		f(p)
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// note writes down what happened, with p.mu held.
func (p *Page) note(session, method string, h *happened) {
	switch method {
	case "Page.frameNavigated":
		if h.Frame.Parent == "" && session == p.session {
			p.url, p.loader = h.Frame.URL+h.Frame.Fragment, h.Frame.LoaderID
			p.seen[p.loader] = true
			p.commits++
		}
	case "Page.navigatedWithinDocument":
		if h.FrameID == p.frame {
			p.url = h.URL
		}
	case "Page.lifecycleEvent":
		if h.Name == "load" && h.FrameID == p.frame {
			p.loaded[h.LoaderID] = true
		}
	case "Page.javascriptDialogOpening":
		p.dialogs = append(p.dialogs, Dialog{Kind: h.Type, Text: h.Message})
	case "Inspector.targetCrashed":
		if session == p.session {
			p.crashed = true
		}
	case "Runtime.consoleAPICalled":
		var words []string
		for _, a := range h.Args {
			words = append(words, a.String())
		}
		m := Message{Kind: h.Type, Text: strings.Join(words, " ")}
		if calls := h.Stack.Calls; len(calls) > 0 {
			m.URL, m.Line = calls[0].URL, calls[0].Line+1
		}
		p.console = append(p.console, m)
	case "Runtime.exceptionThrown":
		if h.Exception != nil {
			p.console = append(p.console, Message{Kind: "exception", Text: h.Exception.Error(), URL: h.Exception.URL, Line: h.Exception.Line + 1})
		}
	case "Log.entryAdded":
		p.console = append(p.console, Message{Kind: h.Entry.Source + ":" + h.Entry.Level, Text: h.Entry.Text, URL: h.Entry.URL, Line: h.Entry.Line + 1})
	case "Browser.downloadWillBegin":
		p.begin(h)
	case "Browser.downloadProgress":
		p.progress(h)
	default:
		p.noteTraffic(method, h)
	}
}

// Console is all that was said so far, oldest first, over all documents that the page had.
func (p *Page) Console() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.console...)
}

// Complaints are the messages of Console that are Bad.
func (p *Page) Complaints() (bad []Message) {
	for _, m := range p.Console() {
		if m.Bad() {
			bad = append(bad, m)
		}
	}
	return bad
}

// Dialogs are all that the page opened so far, oldest first.
func (p *Page) Dialogs() []Dialog {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Dialog(nil), p.dialogs...)
}

// Accept sets whether dialogs are answered with yes, from now on.
func (p *Page) Accept(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accept = yes
}
