package browsertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// pause is between two looks at a page that is waited for.
const pause = 40 * time.Millisecond

// evaluate runs a script and waits for the promise that it may give. A page's content security policy does not hold for it.
func (p *Page) evaluate(script string, out any, deadline time.Time) error {
	var answer struct {
		Result    object     `json:"result"`
		Exception *exception `json:"exceptionDetails"`
	}
	p.mu.Lock()
	crashed := p.crashed
	p.mu.Unlock()
	if crashed {
		return errCrashed // it would never answer
	}
	with := params{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true}
	if err := p.b.call(p.session, "Runtime.evaluate", with, &answer, deadline); err != nil {
		return err
	}
	if answer.Exception != nil {
		return answer.Exception
	}
	if out == nil || answer.Result.Value == nil {
		return nil // undefined has no value
	}
	return json.Unmarshal(answer.Result.Value, out)
}

// Eval runs a script in the page, waits for the promise that it may give, and reads its value as JSON into out unless that is nil. Undefined leaves out as it is. A script whose value is not wanted may lead to another page.
func (p *Page) Eval(script string, out any) {
	p.t.Helper()
	if err := p.evaluate(script, out, until(p.t, p.patience)); err != nil && (out != nil || !left(err)) {
		p.fail("eval %s: %v", clip(script, 200), err)
	}
}

// Inject runs a library in the page, such as one that looks for faults of accessibility, whatever the page's content security policy. It is gone with the document.
func (p *Page) Inject(source string) {
	p.t.Helper()
	if err := p.evaluate(source+"\n;undefined", nil, until(p.t, p.patience)); err != nil {
		p.fail("inject %s: %v", clip(source, 100), err)
	}
}

// poll runs a script until it gives an empty string. Anything else that it gives is what is still missing.
func (p *Page) poll(what, script string) {
	p.t.Helper()
	p.seek(what, fmt.Sprintf(`(async missing => ({Missing: await missing}))(%s)`, script), nil)
}

// seek runs a script until it gives an object whose Missing is empty, and reads its Value into out unless that is nil. A document that goes away while it is looked at is
// no fault: the next one is looked at.
func (p *Page) seek(what, script string, out any) {
	p.t.Helper()
	deadline := until(p.t, p.patience)
	missing := "the page does not answer"
	for {
		var now struct {
			Missing string
			Value   json.RawMessage
		}
		err := p.evaluate(script, &now, deadline)
		var passing *fault
		switch {
		case err == nil && now.Missing == "":
			if out == nil {
				return
			}
			if err := json.Unmarshal(now.Value, out); err != nil {
				p.fail("%s: %v", what, err)
			}
			return
		case err == nil:
			missing = now.Missing
		case errors.Is(err, errLate):
			p.fail("%s: no answer after %v: %s", what, p.patience, missing)
		case !errors.As(err, &passing):
			p.fail("%s: %v", what, err)
		}
		if time.Now().After(deadline) {
			p.fail("%s: not after %v: %s", what, p.patience, missing)
		}
		time.Sleep(pause)
	}
}

// read waits until there is an element, visible or not, and reads what a script gives for it, which calls it e.
func (p *Page) read(selector, script string, out any) {
	p.t.Helper()
	p.seek("look for "+selector, fmt.Sprintf(`(e => e ? {Missing: '', Value: %s} : {Missing: 'there is none'})(document.querySelector(%s))`, script, quote(selector)), out)
}

// visible is a script's function that tells whether an element can be seen.
const visible = `const visible = e => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true});`

// Wait waits until an element can be seen.
func (p *Page) Wait(selector string) {
	p.t.Helper()
	p.poll("wait for "+selector, fmt.Sprintf(`(() => { %s const all = [...document.querySelectorAll(%s)];
		return all.some(visible) ? '' : all.length ? 'there are ' + all.length + ', none of them visible' : 'there is none'; })()`, visible, quote(selector)))
}

// WaitGone waits until no such element can be seen.
func (p *Page) WaitGone(selector string) {
	p.t.Helper()
	p.poll("wait until gone: "+selector, fmt.Sprintf(`(() => { %s const n = [...document.querySelectorAll(%s)].filter(visible).length; return n ? n + ' still visible' : ''; })()`,
		visible, quote(selector)))
}

// WaitText waits until the text of an element has a part. White space counts as one space each.
func (p *Page) WaitText(selector, part string) {
	p.t.Helper()
	p.poll(fmt.Sprintf("wait for %s with %q", selector, part), fmt.Sprintf(`(() => { const texts = [...document.querySelectorAll(%s)].map(e => e.innerText ?? e.textContent);
		const flat = s => s.replace(/\s+/g, ' ').trim(), part = flat(%s);
		return texts.some(s => flat(s).includes(part)) ? '' : texts.length ? 'found ' + JSON.stringify(texts).slice(0, 600) : 'there is none'; })()`, quote(selector), quote(part)))
}

// WaitFor waits until a script gives something that is true. One that throws does not, yet.
func (p *Page) WaitFor(script string) {
	p.t.Helper()
	p.poll("wait for "+clip(script, 200), fmt.Sprintf(`(async look => { try { const got = await look(); return got ? '' : 'it is ' + JSON.stringify(got) } catch (e) { return 'it throws ' + e } })(async () => (%s))`, script))
}

// Text waits for an element and returns its text as it can be seen, without space around it; the first when there are several.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	var text string
	p.read(selector, `e.innerText ?? e.textContent`, &text)
	return strings.TrimSpace(text)
}

// Texts are those of all such elements at this moment, in the order of the document.
func (p *Page) Texts(selector string) []string {
	p.t.Helper()
	texts := []string{}
	p.Eval(fmt.Sprintf(`[...document.querySelectorAll(%s)].map(e => (e.innerText ?? e.textContent).trim())`, quote(selector)), &texts)
	return texts
}

// Count is how many such elements there are at this moment, visible or not.
func (p *Page) Count(selector string) (n int) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`document.querySelectorAll(%s).length`, quote(selector)), &n)
	return n
}

// Attr waits for an element and returns an attribute of it, "" when it has none of that name.
func (p *Page) Attr(selector, name string) string {
	p.t.Helper()
	var value string
	p.read(selector, fmt.Sprintf(`e.getAttribute(%s) ?? ''`, quote(name)), &value)
	return value
}

// Value waits for a field and returns what is in it.
func (p *Page) Value(selector string) string {
	p.t.Helper()
	var value string
	p.read(selector, `e.value ?? ''`, &value)
	return value
}

// URL is where the page is.
func (p *Page) URL() (url string) {
	p.t.Helper()
	p.Eval(`document.URL`, &url)
	return url
}

// Title is the document's.
func (p *Page) Title() (title string) {
	p.t.Helper()
	p.Eval(`document.title`, &title)
	return title
}

// quote makes a string of a script.
func quote(s string) string {
	raw, _ := json.Marshal(s) // strings can be
	return string(raw)
}
