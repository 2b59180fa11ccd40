package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// mostMoves bounds how often the scripts of a page may go to another one: each has the whole budget.
	mostMoves = 20
	// mostTasks bounds the tasks that run before time goes on, should there always be another.
	mostTasks = 10_000
	// stall is how long a document may take to use up its time after it is loaded, when it is not the first, before it is pushed.
	stall = time.Second
	// pushes is how many parts a pushed document's time comes in, and breath how long it has after each for what it asks the network for.
	pushes = 10
	breath = 150 * time.Millisecond
	// mostReads bounds how often a document is read that is replaced while it is.
	mostReads = 5
)

// errNotLoaded says that there is no document, as the browser could not load it.
var errNotLoaded = errors.New("the browser could not load the page")

// params are those of a command.
type params map[string]any

// session is the one page of a browser.
type session struct {
	wire   *Wire
	id     string
	budget time.Duration // of each document
	moves  int           // documents that the top frame had
	pushed int           // how often the last of them was pushed
	push   *time.Timer   // when it is to be pushed next
	done   bool          // its time is over
}

// openSession makes a page in the browser, with nothing in it and its time standing still.
func openSession(w *Wire) (*session, error) {
	s := &session{wire: w, push: time.NewTimer(stall)}
	s.push.Stop()
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	if err := s.call("Browser.setDownloadBehavior", params{"behavior": "deny"}, nil); err != nil {
		return nil, err
	}
	if err := s.call("Target.createTarget", params{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	if err := s.call("Target.attachToTarget", params{"targetId": target.ID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	s.id = attached.ID
	for _, domain := range []string{"Page.enable", "Inspector.enable"} {
		if err := s.call(domain, nil, nil); err != nil {
			return nil, err
		}
	}
	// Time would run out in the empty page otherwise. It stands still in the documents that follow, until they are given some.
	return s, s.call("Emulation.setVirtualTimePolicy", params{"policy": "pause"}, nil)
}

// load goes to an address and returns when the scripts there, or wherever they went, saw budget pass, or when late says so. Their time is not ours: it jumps to the next
// timer when there is nothing to do, and stands still while something is on its way from the network.
func (s *session) load(address string, budget time.Duration, late <-chan time.Time) error {
	s.budget = budget
	defer s.push.Stop()
	var answer struct {
		Fault string `json:"errorText"`
	}
	if err := s.call("Page.navigate", params{"url": address}, &answer); err != nil {
		return err
	}
	if answer.Fault != "" {
		return fmt.Errorf("%w: %.100s", errNotLoaded, answer.Fault)
	}
	for !s.done {
		select {
		case m, ok := <-s.wire.In():
			if !ok {
				return s.wire.Err()
			}
			if err := s.receive(m); err != nil {
				return err
			}
		case <-s.push.C:
			s.pushed++
			if err := s.grant("advance", s.budget/pushes); err != nil {
				return err
			}
		case <-late:
			return nil
		}
	}
	return nil
}

// grant lets time pass. It does not wait for the answer: that may come when the time is over.
func (s *session) grant(policy string, budget time.Duration) error {
	_, err := s.wire.Send(s.id, "Emulation.setVirtualTimePolicy", params{"policy": policy, "budget": budget.Milliseconds(), "maxVirtualTimeTaskStarvationCount": mostTasks})
	return err
}

// snapshot is a script that returns the document and its address, both of the same moment. It runs in a world of its own, in which nothing is as a page's scripts made
// it. It takes each property from the kind of thing that has it, not from the thing: in a document, an element can stand for the property of its name.
const snapshot = `(() => {
	const of = (kind, name, node) => Object.getOwnPropertyDescriptor(kind.prototype, name).get.call(node);
	const type = of(Document, 'doctype', document), root = of(Document, 'documentElement', document);
	const html = root ? (type ? new XMLSerializer().serializeToString(type) + '\n' : '') + of(Element, 'outerHTML', root) : '';
	return {url: of(Document, 'URL', document), html: html.length > %d ? '' : html, large: html.length > %[1]d};
})()`

// read takes the document with its address. The browser, which cannot be mistaken about it, must name the same site.
func (s *session) read(limit int64) (Page, error) {
	var seen [2]string
	for range mostReads {
		page, err := s.take(limit)
		var passing *Fault // the document went away before it was read
		if errors.As(err, &passing) {
			continue
		}
		if err != nil {
			return Page{}, err
		}
		at, err := s.committed()
		if err != nil {
			return Page{}, err
		}
		if err := s.check(page.URL); err != nil {
			return Page{}, err
		}
		if site(page.URL) == site(at) {
			if len(page.HTML) == 0 {
				err = errors.New("the document is empty") // scripts took everything
			}
			return page, err
		}
		seen = [2]string{page.URL, at}
	}
	return Page{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "the page does not stay where it is: %.300q, %.300q", seen[0], seen[1])
}

// frame is the id of the top frame.
func (s *session) frame() (string, error) {
	var tree struct {
		Top struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	err := s.call("Page.getFrameTree", nil, &tree)
	return tree.Top.Frame.ID, err
}

// take runs the script in the top frame.
func (s *session) take(limit int64) (Page, error) {
	var world struct {
		ID int64 `json:"executionContextId"`
	}
	var answer struct {
		Result struct {
			Value struct {
				URL   string `json:"url"`
				HTML  string `json:"html"`
				Large bool   `json:"large"`
			} `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	frame, err := s.frame()
	if err != nil {
		return Page{}, err
	}
	if err := s.call("Page.createIsolatedWorld", params{"frameId": frame, "worldName": "marchwarden"}, &world); err != nil {
		return Page{}, err
	}
	if err := s.call("Runtime.evaluate", params{"expression": fmt.Sprintf(snapshot, limit), "contextId": world.ID, "returnByValue": true}, &answer); err != nil {
		return Page{}, err
	}
	got := answer.Result.Value
	switch {
	case answer.Exception != nil:
		return Page{}, fmt.Errorf("read the document: %.300s", answer.Exception.Text)
	case got.Large || int64(len(got.HTML)) > limit:
		return Page{}, marchwarden.Errorf(marchwarden.CodeMalformed, "the document is over %d bytes", limit)
	}
	return Page{HTML: []byte(got.HTML), URL: got.URL}, nil
}

// committed is where the browser has the page.
func (s *session) committed() (string, error) {
	var history struct {
		Current int `json:"currentIndex"`
		Entries []struct {
			URL string `json:"url"`
		} `json:"entries"`
	}
	if err := s.call("Page.getNavigationHistory", nil, &history); err != nil {
		return "", err
	}
	if history.Current < 0 || history.Current >= len(history.Entries) {
		return "", marchwarden.Errorf(marchwarden.CodeMalformed, "the browser does not say where the page is")
	}
	return history.Entries[history.Current].URL, nil
}

// check refuses a document that came from no server.
func (s *session) check(address string) error {
	switch {
	case site(address) != "":
		return nil
	case strings.HasPrefix(address, "chrome-error:") || s.moves == 0: // the browser's own page about a failure, or nothing
		return errNotLoaded
	}
	return marchwarden.Errorf(marchwarden.CodeDenied, "its scripts went to %.300q, which is not an http or https address", address)
}

// site is the scheme, host and port of an http or https address, and "" for any other.
func site(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// call sends a command and waits for its answer. Once the page has its session, commands go to it.
func (s *session) call(method string, with params, result any) error {
	id, err := s.wire.Send(s.id, method, with)
	if err != nil {
		return err
	}
	for m := range s.wire.In() {
		if m.ID != id {
			if err := s.receive(m); err != nil {
				return err
			}
			continue
		}
		if m.Error != nil {
			return fmt.Errorf("%s: %w", method, m.Error)
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeMalformed, "%s", method)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", method, s.wire.Err())
}

// receive takes note of an event.
func (s *session) receive(m Message) error {
	switch m.Method {
	case "Page.javascriptDialogOpening":
		return s.answerDialog(m.Params)
	case "Page.frameNavigated":
		return s.moved(m.Params)
	case "Page.loadEventFired":
		if s.moves > 1 && s.pushed == 0 {
			s.push.Reset(stall)
		}
	case "Emulation.virtualTimeBudgetExpired":
		if s.done = s.pushed == 0 || s.pushed >= pushes; !s.done {
			s.push.Reset(breath)
		}
	case "Inspector.targetCrashed", "Target.detachedFromTarget":
		return errors.New("the page broke the browser")
	}
	return nil
}

// answerDialog closes a dialog, for which the page waits: it agrees to nothing but leaving the page.
func (s *session) answerDialog(event json.RawMessage) error {
	var dialog struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(event, &dialog); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read a dialog")
	}
	_, err := s.wire.Send(s.id, "Page.handleJavaScriptDialog", params{"accept": dialog.Type == "beforeunload"})
	return err
}

// moved notes a document that is new in the top frame. The first is given its time. The browser gives as much to one that follows, but when that comes from the same
// site it takes the way there for a request that never ends, and time stands still: then it has to be pushed.
func (s *session) moved(event json.RawMessage) error {
	var moved struct {
		Frame struct {
			Parent string `json:"parentId"`
			URL    string `json:"url"`
		} `json:"frame"`
	}
	if err := json.Unmarshal(event, &moved); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read where the page went")
	}
	if moved.Frame.Parent != "" || s.moves == 0 && moved.Frame.URL == "about:blank" { // that is where it starts
		return nil
	}
	s.done, s.pushed = false, 0
	s.push.Stop()
	if s.moves++; s.moves > mostMoves {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "its scripts went from page to page more than %d times", mostMoves)
	}
	if s.moves > 1 {
		return nil
	}
	return s.grant("pauseIfNetworkFetchesPending", s.budget)
}
