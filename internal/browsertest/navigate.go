package browsertest

import (
	"errors"
	"fmt"
	"time"
)

// Go goes to an address and waits until it is loaded: scripts, styles and pictures too, but not what scripts ask for later.
func (p *Page) Go(address string) {
	p.t.Helper()
	if err := p.Try(address); err != nil {
		p.fail("go to %s: %v", address, err)
	}
}

// Try is Go for addresses that may not load; it says why they did not. An answer with an error status is loaded like any other.
func (p *Page) Try(address string) error {
	var answer struct {
		LoaderID string `json:"loaderId"`
		Fault    string `json:"errorText"`
	}
	if err := p.call("Page.navigate", params{"url": address}, &answer); err != nil {
		return err
	}
	if answer.Fault != "" {
		return errors.New(answer.Fault)
	}
	if answer.LoaderID == "" {
		return nil // another place in the same document
	}
	if err := p.await(func() bool {
		return p.loaded[answer.LoaderID] || p.seen[answer.LoaderID] && p.loader != answer.LoaderID && p.loaded[p.loader] // scripts went on
	}); err != nil {
		return fmt.Errorf("wait for load: %w", err)
	}
	return nil
}

// Reload loads the page again and waits as Go does.
func (p *Page) Reload() {
	p.t.Helper()
	p.next("reload", func() { p.must("Page.reload", nil, nil) })
}

// Back goes to the page before, which is loaded again, and waits as Go does.
func (p *Page) Back() {
	p.t.Helper()
	p.next("go back", func() { p.must("Runtime.evaluate", params{"expression": "history.back()"}, nil) })
}

// Follow clicks what leads to another page, as a link or the button of a form, and waits as Go does.
func (p *Page) Follow(selector string) {
	p.t.Helper()
	p.next("follow "+selector, func() { p.Click(selector) })
}

// Leads calls act, which should lead to another page in whatever way, and waits as Go does.
func (p *Page) Leads(act func()) {
	p.t.Helper()
	p.next("be led", act)
}

func (p *Page) next(what string, act func()) {
	p.t.Helper()
	p.mu.Lock()
	before := p.commits
	p.mu.Unlock()
	act()
	if err := p.await(func() bool { return p.commits > before && p.loaded[p.loader] }); err != nil {
		p.fail("%s: wait for the next page: %v", what, err)
	}
}

// Timing is what the browser measured of the document that is there. Times count from the beginning of the navigation.
type Timing struct {
	FirstPaint, FirstContentfulPaint, Interactive, Load time.Duration
	Transferred                                         int64 // bytes over the wire of the document and all that it asked for, with headers; what came from the cache counts nothing
	Decoded                                             int64 // bytes of their bodies, unpacked
	Resources                                           int   // besides the document
}

// Timing waits until the page has painted and returns what was measured.
func (p *Page) Timing() Timing {
	p.t.Helper()
	p.WaitFor(`performance.getEntriesByName('first-contentful-paint').length > 0 && performance.getEntriesByType('navigation')[0].loadEventEnd > 0`)
	var got struct {
		FP, FCP, Interactive, Load float64
		Transferred, Decoded       int64
		Resources                  int
	}
	p.Eval(`(() => {
		const nav = performance.getEntriesByType('navigation')[0], res = performance.getEntriesByType('resource'), all = [nav, ...res];
		const paint = name => (performance.getEntriesByName(name)[0] || {startTime: 0}).startTime, sum = name => all.reduce((n, e) => n + (e[name] || 0), 0);
		return {FP: paint('first-paint'), FCP: paint('first-contentful-paint'), Interactive: nav.domInteractive, Load: nav.loadEventEnd,
			Transferred: sum('transferSize'), Decoded: sum('decodedBodySize'), Resources: res.length};
	})()`, &got)
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	return Timing{FirstPaint: ms(got.FP), FirstContentfulPaint: ms(got.FCP), Interactive: ms(got.Interactive), Load: ms(got.Load),
		Transferred: got.Transferred, Decoded: got.Decoded, Resources: got.Resources}
}
