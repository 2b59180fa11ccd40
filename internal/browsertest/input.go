package browsertest

import (
	"fmt"
	"strings"
	"unicode"
)

// spot is a script that scrolls an element into view and gives a point of it that a mouse would hit, or what is in the way. An element in a line of text may be broken
// into several boxes; the middle of the first one is taken.
const spot = `(async () => {
	const e = document.querySelector(%s);
	if (!e) return {Missing: 'there is none'};
	if (!e.checkVisibility({visibilityProperty: true})) return {Missing: 'it is not visible'};
	if (e.disabled) return {Missing: 'it is disabled'};
	e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
	const box = () => [...e.getClientRects()].find(r => r.width > 0 && r.height > 0);
	const was = box();
	%s;
	const is = box();
	if (!was || !is) return {Missing: 'it has no size'};
	if (Math.abs(was.x - is.x) > 1 || Math.abs(was.y - is.y) > 1) return {Missing: 'it moves'};
	const X = is.x + is.width / 2, Y = is.y + is.height / 2, hit = document.elementFromPoint(X, Y);
	if (!hit) return {Missing: 'it is out of view'};
	if (hit !== e && !e.contains(hit) && !(hit.closest('label') && hit.closest('label').control === e)) return {Missing: 'it is covered by ' + hit.outerHTML.slice(0, 200)};
	return {Missing: '', Value: {X, Y}};
})()`

// twoFrames waits until the page has painted, or a moment where it does not.
const twoFrames = `await new Promise(done => { const late = setTimeout(done, 250); requestAnimationFrame(() => requestAnimationFrame(() => { clearTimeout(late); done(); })); })`

// Click waits until an element can be clicked, scrolls it into view and clicks it with the mouse.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y := p.point(selector)
	for _, e := range []params{{"type": "mouseMoved"}, {"type": "mousePressed", "button": "left", "buttons": 1, "clickCount": 1},
		{"type": "mouseReleased", "button": "left", "buttons": 0, "clickCount": 1}} {
		e["x"], e["y"] = x, y
		p.must("Input.dispatchMouseEvent", e, nil)
	}
}

// Hover waits until an element can be pointed at and moves the mouse there.
func (p *Page) Hover(selector string) {
	p.t.Helper()
	x, y := p.point(selector)
	p.must("Input.dispatchMouseEvent", params{"type": "mouseMoved", "x": x, "y": y}, nil)
}

func (p *Page) point(selector string) (x, y float64) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	wait := twoFrames
	if p.scriptless {
		wait = "" // nothing would ever call back
	}
	p.seek("point at "+selector, fmt.Sprintf(spot, quote(selector), wait), &at)
	return at.X, at.Y
}

// Type waits for a field, goes to its end and types with the keyboard, a key at a time.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.focus(selector, `if (e.setSelectionRange && e.value !== undefined) { try { e.setSelectionRange(e.value.length, e.value.length) } catch (_) {} }`)
	p.keys(text)
}

// Fill is Type in place of what is in the field.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	p.focus(selector, `if (e.select) e.select();`)
	if text == "" {
		p.Press("Delete")
		return
	}
	p.keys(text)
}

// Choose waits for a list of options and takes the one with the value, as a user would: the page hears of it.
func (p *Page) Choose(selector, value string) {
	p.t.Helper()
	p.focus(selector, "")
	var found bool
	p.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%s), v = %s; if (![...e.options].some(o => o.value === v)) return false;
		e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); return true; })()`, quote(selector), quote(value)), &found)
	if !found {
		p.fail("choose %q in %s: there is no such option", value, selector)
	}
}

func (p *Page) focus(selector, then string) {
	p.t.Helper()
	p.Wait(selector)
	p.poll("focus "+selector, fmt.Sprintf(`(() => { const e = document.querySelector(%s); if (!e) return 'there is none'; e.focus();
		if (document.activeElement !== e) return 'it takes no focus'; %s return ''; })()`, quote(selector), then))
}

func (p *Page) keys(text string) {
	p.t.Helper()
	for _, r := range text {
		if r == '\n' {
			p.Press("Enter")
			continue
		}
		p.Press(string(r))
	}
}

// key is one of the keyboard: what the browser calls it, its number, and what it writes.
type key struct {
	code   string
	number int
	text   string
}

var keys = map[string]key{
	"Enter": {"Enter", 13, "\r"}, "Tab": {"Tab", 9, ""}, "Escape": {"Escape", 27, ""}, "Backspace": {"Backspace", 8, ""}, "Delete": {"Delete", 46, ""},
	"ArrowLeft": {"ArrowLeft", 37, ""}, "ArrowUp": {"ArrowUp", 38, ""}, "ArrowRight": {"ArrowRight", 39, ""}, "ArrowDown": {"ArrowDown", 40, ""},
	"Home": {"Home", 36, ""}, "End": {"End", 35, ""}, "PageUp": {"PageUp", 33, ""}, "PageDown": {"PageDown", 34, ""}, " ": {"Space", 32, " "},
}

var modifiers = map[string]int{"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

// Press presses a key where the focus is: a character, or one of Enter, Tab, Escape, Space, Backspace, Delete, ArrowLeft, ArrowUp, ArrowRight, ArrowDown, Home, End, PageUp
// and PageDown; after modifiers, as in Shift+Tab or Control+Enter.
func (p *Page) Press(name string) {
	p.t.Helper()
	held := 0
	for {
		before, after, ok := strings.Cut(name, "+")
		bit, known := modifiers[before]
		if !ok || !known || after == "" {
			break
		}
		held, name = held|bit, after
	}
	if name == "Space" {
		name = " "
	}
	k, ok := keys[name]
	if one := []rune(name); !ok && len(one) == 1 {
		k = character(one[0])
	} else if !ok {
		p.fail("press %s: no such key", name)
	}
	down := params{"type": "rawKeyDown", "key": name, "code": k.code, "windowsVirtualKeyCode": k.number, "modifiers": held}
	if k.text != "" && held&^modifiers["Shift"] == 0 || name == "Enter" {
		down["type"], down["text"] = "keyDown", k.text
	}
	p.must("Input.dispatchKeyEvent", down, nil)
	p.must("Input.dispatchKeyEvent", params{"type": "keyUp", "key": name, "code": k.code, "windowsVirtualKeyCode": k.number, "modifiers": held}, nil)
}

func character(r rune) key {
	k := key{text: string(r)}
	switch upper := unicode.ToUpper(r); {
	case upper >= 'A' && upper <= 'Z':
		k.code, k.number = "Key"+string(upper), int(upper)
	case r >= '0' && r <= '9':
		k.code, k.number = "Digit"+string(r), int(r)
	}
	return k
}
