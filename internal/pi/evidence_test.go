package pi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

const (
	height = "The Kessler dam is 120 metres high."
	other  = "The reservoir holds 12 million cubic metres of water."
	pageAt = "https://dams.example/kessler"
)

// testimony is one way of citing, and what becomes of it.
type testimony struct {
	name  string
	trust dispatch.Trust
	mute  bool // hands over no evidence
	act   act
	page  string // what stands at pageAt now; "" is nothing
	// What comes of it: admitted, unchecked or dropped; and what is cited then.
	fate    string
	excerpt string
	named   string // a part of the gap that tells
}

func citing(change func(c *marchwarden.Citation)) act {
	a := answering(doc{At: pageAt, Text: height})
	if change != nil {
		change(&a.Result.Citations[0])
	}
	return a
}

func hashOf(text string) string { return blob.Of([]byte(text)).String() }

// handing is an act that hands over something for a hash, true or not.
func (a act) handing(hash, text string) act {
	a.Serves = map[string]string{hash: text}
	return a
}

var testimonies = []testimony{
	{name: "true", act: citing(nil), fate: "admitted", excerpt: height},
	{name: "true, of a stranger", trust: dispatch.Known, act: citing(nil), fate: "admitted", excerpt: height},
	{name: "not in the stored bytes", act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = "The Kessler dam is 999 metres high." }), fate: "dropped", named: "witness cites an excerpt that is not in the document"},
	{name: "nearly in the stored bytes", act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = "The Kessler dam is 121 metres high." }), fate: "dropped", named: "witness cites"},
	{name: "the hash of another text", act: citing(func(c *marchwarden.Citation) { c.ContentHash = hashOf(other) }).handing(hashOf(other), other), fate: "dropped", named: "witness cites"},
	{name: "the hash of a colleague's text", act: citing(func(c *marchwarden.Citation) { c.ContentHash = hashOf("The colleague stores this.") }), fate: "dropped", named: "witness cites"},
	{name: "a colleague's text by its hash alone", trust: dispatch.Known, mute: true, act: citing(func(c *marchwarden.Citation) {
		c.ContentHash, c.RawExcerpt, c.Span = hashOf("The colleague stores this."), "The colleague stores this.", nil
	}), fate: "unchecked", excerpt: "The colleague stores this."},
	{name: "other bytes under the hash", act: citing(func(c *marchwarden.Citation) { c.ContentHash = hashOf("a text that is nowhere") }).handing(hashOf("a text that is nowhere"), height), fate: "unchecked", excerpt: height},
	{name: "other bytes under the hash, and a page", act: citing(func(c *marchwarden.Citation) { c.ContentHash = hashOf("a text that is nowhere") }).handing(hashOf("a text that is nowhere"), height), page: other, fate: "dropped", named: "witness cites"},
	{name: "a wrong span", act: citing(func(c *marchwarden.Citation) { c.Span = &marchwarden.Span{Start: 4, End: 11} }), fate: "admitted", excerpt: height},
	{name: "a span beyond the end", act: citing(func(c *marchwarden.Citation) { c.Span = &marchwarden.Span{Start: 4, End: 1 << 30} }), fate: "admitted", excerpt: height},
	{name: "a span of other words", act: citing(func(c *marchwarden.Citation) { c.RawExcerpt, c.Span = other, &marchwarden.Span{Start: 0, End: 7} }), fate: "dropped", named: "witness cites"},
	{name: "refetched", trust: dispatch.Known, mute: true, act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = "The  Kessler dam is 120 metres high." }), page: "Facts.\n\n" + height + "\n\nMore facts.", fate: "admitted", excerpt: height},
	{name: "refetched, folded", trust: dispatch.Known, mute: true, act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = `The "Kessler" dam's height is 120 m.` }),
		page: "The “Kessler” dam’s\nheight is 120 m.", fate: "admitted", excerpt: "The “Kessler” dam’s\nheight is 120 m."},
	{name: "refetched, and not there", trust: dispatch.Known, mute: true, act: citing(nil), page: other, fate: "dropped", named: "witness cites"},
	{name: "no page to be had", trust: dispatch.Known, mute: true, act: citing(nil), fate: "unchecked", excerpt: height},
	{name: "unknown, and hands over", trust: dispatch.Unknown, act: citing(nil), fate: "unchecked", excerpt: height},
	{name: "unknown, hands over, and the page differs", trust: dispatch.Unknown, act: citing(nil), page: other, fate: "dropped", named: "witness cites"},
	{name: "unknown, and the page has it", trust: dispatch.Unknown, act: citing(nil), page: height + " " + other, fate: "admitted", excerpt: height},
	{name: "no text", act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = marchwarden.ExcerptNonText }), fate: "dropped"},
	{name: "blank", act: citing(func(c *marchwarden.Citation) { c.RawExcerpt = " \n" }), fate: "dropped"},
	{name: "without a place", act: citing(func(c *marchwarden.Citation) { c.Locator = "" }), fate: "dropped"},
	{name: "cut", act: citing(func(c *marchwarden.Citation) {
		c.RawExcerpt, c.Span = "The Kessler dam"+marchwarden.ExcerptCut, &marchwarden.Span{Start: 0, End: 15}
	}), fate: "admitted", excerpt: "The Kessler dam"},
}

// TestTestimony holds every way of citing against stored bytes.
func TestTestimony(t *testing.T) {
	t.Parallel()
	roles := map[string]*role{}
	var all []role
	name := func(tm testimony) string {
		return "witness-" + string(tm.trust) + map[bool]string{true: "-mute"}[tm.mute]
	}
	for i := range testimonies {
		tm := &testimonies[i]
		if tm.trust == "" {
			tm.trust = dispatch.Own
		}
		if roles[name(*tm)] == nil {
			roles[name(*tm)] = &role{Member: dispatch.Member{Name: name(*tm), Trust: tm.trust}, Mute: tm.mute, Acts: map[string][]act{}}
		}
		roles[name(*tm)].Acts[tm.name] = []act{tm.act}
	}
	for _, r := range roles {
		all = append(all, *r)
	}
	tr := gather(t, all...)
	for _, tm := range testimonies {
		t.Run(tm.name, func(t *testing.T) { tm.judge(t, tr, name(tm)) })
	}
}

// refetch finds one page, and stores it.
func (o *office) refetch(text string) func(context.Context, string) (fetch.Page, error) {
	return func(ctx context.Context, at string) (fetch.Page, error) {
		if at != pageAt || text == "" {
			return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is at %s", at)
		}
		ref, err := o.blobs.Put(ctx, []byte(text))
		return fetch.Page{Text: ref, Title: "The page", Published: "2026-01-02", FetchedAt: time.Unix(1700000000, 0).UTC()}, err
	}
}

func (tm testimony) judge(t *testing.T, tr *troupe, name string) {
	o := newOffice(t)
	if _, err := o.blobs.Put(t.Context(), []byte("The colleague stores this.")); err != nil {
		t.Fatal(err)
	}
	res := o.ask(t, pi.Config{Dispatcher: only(tr, name), Refetch: o.refetch(tm.page)}, marchwarden.Request{Question: dam, Context: tm.name})
	if got := res.Rihlas[0].Citations; tm.fate == "dropped" && (got != 0 || len(res.Citations) != 0) || tm.fate != "dropped" && (got != 1 || len(res.Citations) != 1) {
		t.Fatalf("%d citations stood, %+v", got, res.Citations)
	}
	if tm.named != "" && !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool {
		return strings.Contains(g.Detail, strings.Replace(tm.named, "witness", name, 1)) && strings.Contains(g.Topic, "dams.example")
	}) {
		t.Errorf("nothing tells of it: %+v", res.Gaps)
	}
	if tm.fate == "dropped" {
		if res.Confidence > 0.25 {
			t.Errorf("a confidence of %v in nothing", res.Confidence)
		}
		return
	}
	c := res.Citations[0]
	if c.RawExcerpt != tm.excerpt || c.Unchecked != (tm.fate == "unchecked") {
		t.Errorf("%+v", c)
	}
	unchecked := slices.ContainsFunc(res.Claims, func(c marchwarden.Claim) bool { return c.Support != marchwarden.Unchecked })
	if origins := res.ConfidenceFactors.NumCorroboratingSources; tm.fate == "unchecked" && (unchecked || origins != 0 || res.Confidence >= 0.3 || c.Authority != marchwarden.LowAuthority) || tm.fate == "admitted" && (origins != 1 || res.Confidence < 0.4) {
		t.Errorf("%d origins, confidence %v, %+v", origins, res.Confidence, res.Claims)
	}
	if tm.page != "" && (c.Title != "The page" || c.Published != "2026-01-02" || c.ContentHash != hashOf(tm.page)) {
		t.Errorf("it is not cited from the page: %+v", c)
	}
}

// TestUncheckedGivesWay has a stranger's bare word arrive before the document
// itself: what the document says is the evidence then, whoever came first.
func TestUncheckedGivesWay(t *testing.T) {
	t.Parallel()
	const whole = "Facts. " + height + " " + other
	late := answering(doc{At: pageAt, Text: whole}).after("stranger", 300*time.Millisecond)
	late.Result.Citations[0].RawExcerpt, late.Result.Citations[0].Span = height, &marchwarden.Span{Start: 7, End: 7 + len(height)}
	late.Result.Claims[0].Text = height
	stranger := func(text string) act { return answering(doc{At: pageAt, Text: text}) }
	same := answering(doc{At: pageAt, Text: whole}).after("stranger", 300*time.Millisecond)
	tr := gather(t,
		role{Member: dispatch.Member{Name: "stranger", Trust: dispatch.Known}, Mute: true, Acts: map[string][]act{
			"misplaced": {answering(doc{At: "https://www.nasa.gov/", Text: whole})},
			"true":      {stranger(other)}, "false": {stranger("The Kessler dam is 3 metres high.")}}},
		role{Member: dispatch.Member{Name: "own"}, Acts: map[string][]act{"true": {late}, "false": {late}, "misplaced": {same}}})
	for _, word := range []string{"true", "false", "misplaced"} {
		t.Run(word, func(t *testing.T) {
			res := newOffice(t).ask(t, pi.Config{Dispatcher: tr, Options: pi.Options{MaxDepth: -1}}, marchwarden.Request{Question: dam, Context: word})
			if !slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool {
				return c.ContentHash == hashOf(whole) && !c.Unchecked && strings.Contains(c.RawExcerpt, height)
			}) {
				t.Errorf("the document was lost: %+v\n%+v", res.Citations, res.Gaps)
			}
			if slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool { return c.Unchecked }) || res.ConfidenceFactors.NumCorroboratingSources != 1 {
				t.Errorf("%+v, %d origins", res.Citations, res.ConfidenceFactors.NumCorroboratingSources)
			}
			lied := slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool {
				return strings.Contains(g.Detail, "stranger cites an excerpt that is not")
			})
			if lied != (word == "false") {
				t.Errorf("gaps are %+v", res.Gaps)
			}
			if at := res.Citations[0].Locator; at != pageAt {
				t.Errorf("the document is said to be at %s", at)
			}
		})
	}
}
