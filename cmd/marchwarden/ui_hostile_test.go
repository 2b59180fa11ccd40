//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup/markuptest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// active lists what in a document could do something, ask for something or lead somewhere by itself, beside what
// every page of this program has. What stands in a template, which is not shown yet, counts, too.
const active = `(() => {
	const bad = [], own = location.origin, say = e => bad.push(e.outerHTML.slice(0, 200));
	const inside = u => { try { return new URL(u, location.href).origin === own } catch (_) { return false } };
	const loads = ['src', 'srcset', 'data', 'poster', 'background', 'ping', 'formaction', 'srcdoc', 'style', 'manifest', 'longdesc'];
	const look = root => root.querySelectorAll('*').forEach(e => {
		const tag = e.localName, has = n => e.hasAttribute(n), get = n => e.getAttribute(n);
		if (e.content instanceof DocumentFragment) look(e.content);
		if (['iframe', 'frame', 'object', 'embed', 'applet', 'base', 'style', 'audio', 'video', 'source', 'track', 'picture', 'marquee', 'math', 'foreignObject', 'animate', 'set', 'image', 'use', 'feImage', 'font', 'plaintext', 'xmp', 'noembed'].includes(tag)) return say(e);
		if ([...e.attributes].some(a => /^on/i.test(a.name) || /^\s*(javascript|data|vbscript|file|blob):/i.test(a.value) && a.name !== 'value' && a.name !== 'aria-label' && a.name !== 'title')) return say(e);
		if (tag === 'script' && !(inside(get('src') || 'x:') && new URL(e.src).pathname.startsWith('/static/') && !e.textContent)) return say(e);
		if (tag === 'link' && !(inside(e.href) && new URL(e.href).pathname.startsWith('/static/'))) return say(e);
		if (tag === 'meta' && has('http-equiv')) return say(e);
		if (tag === 'img' && !(inside(e.src) && new URL(e.src).pathname.startsWith('/static/'))) return say(e);
		if (tag === 'form' && !inside(get('action') || '')) return say(e);
		if (loads.some(has) && tag !== 'script' && tag !== 'img') return say(e);
		if (tag === 'a' && has('href') && !inside(e.href) && !(/^https?:$/.test(e.protocol) && e.rel.includes('noopener'))) return say(e);
		if (tag !== 'a' && tag !== 'link' && (has('href') || has('xlink:href'))) return say(e);
		if (has('autofocus') && e.id !== 'question' || has('cite')) return say(e); // the box for a question is ours
	});
	look(document);
	return bad;
})()`

// dull fails if there is anything active in the document, and says how much there was.
func dull(t *testing.T, where string, p *browsertest.Page) {
	t.Helper()
	var bad []string
	p.Eval(active, &bad)
	for _, b := range bad {
		t.Errorf("%s: an active node: %s", where, b)
	}
}

// hostileRun has every text in every field that a page shows.
func hostileRun(texts []string) handRun {
	all := strings.Join(texts, " ")
	run := handRun{question: all, context: all, researcher: texts[0], took: 3 * time.Second, result: &marchwarden.Result{Confidence: 0.5, Warnings: texts}}
	res := run.result
	var answer strings.Builder
	for i, text := range texts {
		run.sources = append(run.sources, handSource{title: text, author: text, locator: hostileLocator(i, text), published: text, origin: text, kind: "web", before: all + "\n\n", excerpt: text, after: "\n\n" + all})
		fmt.Fprintf(&answer, "%s [%d]\n\n", text, i+1)
		res.Claims = append(res.Claims, marchwarden.Claim{Text: text, Citations: []int{i + 1}, Support: []marchwarden.Support{marchwarden.Supported, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Unchecked}[i%4]})
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: text, Category: marchwarden.SourceNotFound, Detail: text})
		res.DiscoveryEvents = append(res.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: marchwarden.NewSource, SuggestedResearcher: text, Query: text, Reason: text, SourceLocator: text})
		res.OpenQuestions = append(res.OpenQuestions, marchwarden.OpenQuestion{Question: text, Context: text, Priority: marchwarden.High, SourceLocator: text})
		res.Decisions = append(res.Decisions, marchwarden.Decision{About: "open_question", Topic: text, From: 1, Action: marchwarden.Accepted, Reason: text})
		side := marchwarden.Side{Locator: text, RawExcerpt: text, Value: text, Title: text, Published: text, Researcher: text}
		res.Contradictions = append(res.Contradictions, marchwarden.Contradiction{Subject: text, Attribute: text, A: side, B: side, Detail: text})
		res.Rihlas = append(res.Rihlas, marchwarden.Rihla{Researcher: text, Question: text, Reason: text, Outcome: text})
	}
	res.Answer = answer.String()
	res.ShortAnswer = &marchwarden.ShortAnswer{Text: "so " + all, Citation: 99, Kind: marchwarden.ShortSpan}
	res.Closest = []marchwarden.Closest{{Source: all, Locator: all, Title: all, RawExcerpt: all, Reason: all}}
	return run
}

// hostileLocator is an address or a file name with a text in it; some are nothing but the text.
func hostileLocator(i int, text string) string {
	switch i % 3 {
	case 0:
		return text
	case 1:
		return "https://evil.example/" + text
	}
	return "lib://notes/" + text + ".md"
}

// hostileDrift is a check whose every word is hostile.
func hostileDrift(id marchwarden.TraceID, texts []string) drift.Report {
	rep := drift.Report{TraceID: id, CheckedAt: handNoon.Add(48 * time.Hour)}
	for i, text := range texts {
		rep.Sources = append(rep.Sources, drift.Source{Locator: hostileLocator(i, text), Title: text, State: drift.Changed, Detail: text, MovedTo: text, Citations: []int{i + 1}})
		rep.Passages = append(rep.Passages, drift.Passage{Citation: i + 1, Locator: text, State: drift.Altered, Excerpt: text, Now: text})
		rep.Claims = append(rep.Claims, drift.Claim{Text: text, Citations: []int{i + 1}, State: drift.Lost})
	}
	return rep
}

// hostileLive is a run that goes on, with journeys that are called and asked for such things.
func hostileLive(texts []string) handRun {
	run := handRun{question: strings.Join(texts[:5], " "), going: true, began: time.Now().Add(-time.Minute)}
	for i, text := range texts {
		if i == 12 {
			break
		}
		run.rihlas = append(run.rihlas, handRihla{researcher: text, question: texts[len(texts)-1-i], reason: text, sent: i + 1, search: i + 2, end: (i % 2) * (i + 5),
			gaps:        []marchwarden.Gap{{Topic: text, Category: marchwarden.AccessDenied, Detail: text}},
			discoveries: []marchwarden.DiscoveryEvent{{Type: marchwarden.RelatedResearch, Query: text, Reason: text, SourceLocator: text}}})
	}
	return run
}

// TestPageHostile shows texts that want to be more than text on every page and wherever a page has a place
// for text from outside: nothing of them becomes active, no other server is asked for anything, and no
// console has a word to say, of a violated policy neither.
func TestPageHostile(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	texts := markuptest.All()
	r := newRack(t)
	home := r.home(t)
	h := writeByHand(t, home)
	h.writeHostile(texts)
	s := r.ui(t, home)
	p := s.enter(t, b)
	big := handID(100).String()
	run := s.url + "/runs/" + big
	visit := func(where, address string, then func()) {
		t.Helper()
		p.Go(address)
		p.Wait("main")
		if then != nil {
			then()
		}
		dull(t, where, p)
		s.calm(t, where, p)
	}
	visit("the answer", run, func() { p.WaitText("#answer", "alert(1)") })
	for i := range texts { // by the script, which reads the panel anew
		p.Eval(fmt.Sprintf(`void document.querySelector('#sources a[data-source="%d"]').click()`, i+1), nil)
		p.WaitFor(fmt.Sprintf(`document.querySelector('#source.open .kind')?.textContent.includes('Source %d of')`, i+1))
		dull(t, fmt.Sprintf("the panel of source %d", i+1), p)
	}
	s.calm(t, "the panels", p)
	for i := range texts {
		if i%9 == 0 { // the same template each time
			visit(fmt.Sprintf("source %d", i+1), fmt.Sprintf("%s/source/%d", run, i+1), func() { p.Wait(".stored, blockquote") })
			visit(fmt.Sprintf("the answer with source %d", i+1), fmt.Sprintf("%s?source=%d", run, i+1), nil)
		}
	}
	for i := range texts {
		if i%6 == 0 {
			visit(fmt.Sprintf("the answer to question %d", i+1), s.url+"/runs/"+handID((i+2)*100).String(), nil)
		}
	}
	visit("sources again", run+"/drift", func() { p.WaitText("main", "alert(1)") })
	visit("deleting", run+"/delete", func() { p.WaitText("main", "alert(1)") })
	visit("asking again", s.url+"/?from="+big, func() { p.WaitFor(`document.querySelector('#question').value.includes('alert(1)')`) })
	for offset := 0; offset < len(texts); offset += 25 {
		visit("history", fmt.Sprintf("%s/history?offset=%d", s.url, offset), func() { p.Wait(".entry") })
	}
	for _, text := range texts {
		if strings.HasPrefix(text, "<") && len(text) < 28 { // what was typed is shown again
			visit("searching for it", s.url+"/history?"+urlQuery("q", text)+"&"+urlQuery("min_cost", text)+"&"+urlQuery("with", text), nil)
		}
	}
	h.hostileLiveOn(t, s, p, texts)
	t.Logf("%d texts on every page: nothing became active, nobody was asked for anything", len(texts))
}

// writeHostile writes the run with everything in it, one with each text as its question, and a check of sources.
func (h *byHand) writeHostile(texts []string) {
	h.t.Helper()
	big, _ := h.put(hostileRun(texts))
	for _, text := range texts {
		h.put(handRun{question: text, researcher: text, result: &marchwarden.Result{Answer: text}})
	}
	if err := drift.Keep(h.kept, hostileDrift(big, texts)); err != nil {
		h.t.Fatal(err)
	}
}

// hostileLiveOn watches a run that goes on, and lets more happen while it is watched.
func (h *byHand) hostileLiveOn(t *testing.T, s *uiServed, p *browsertest.Page, texts []string) {
	t.Helper()
	id, w := h.put(hostileLive(texts))
	p.Go(s.url + "/runs/" + id.String())
	p.WaitText("#live .journeys", "alert(1)")
	dull(t, "a run that goes on", p)
	h.now = time.Now()
	for i, text := range texts {
		h.append(w, &trace.Decision{What: marchwarden.Decision{About: "open_question", Topic: fmt.Sprintf("thing %d: %s", i+1, text), From: 1, Action: marchwarden.Flagged, Reason: text}})
	}
	p.WaitFor(fmt.Sprintf(`document.querySelector('#live').textContent.includes('thing %d:')`, len(texts))) // it may be folded
	dull(t, "a run that went on", p)
	s.calm(t, "a run that goes on", p)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p.WaitText("main", "cut off")
	dull(t, "a run that was cut off", p)
	s.calm(t, "a run that was cut off", p)
}

// TestPageHostileIsNoticed shows the same texts on a page without protection: each of the checks above speaks.
func TestPageHostileIsNoticed(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>x</title><main>"+r.URL.Query().Get("text")+"</main>") // the mistake that the pages must not make
	}))
	defer srv.Close()
	p := b.Page(t)
	nodes := 0
	for _, text := range []string{`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<svg/onload=alert(1)>`, `<iframe src=//evil.example></iframe>`, `<a href="javascript:alert(1)">go</a>`,
		`<style>*{background:url(https://evil.example/)}</style>`, `<form action="https://evil.example/"></form>`, `<img src="https://evil.example/p.png">`, `<template><script>alert(1)</script></template>`,
		`<link rel=stylesheet href=//evil.example>`, `<p style="background:url(https://evil.example/)">x</p>`, `<a href="https://evil.example/">x</a>`} {
		p.Go(srv.URL + "/?" + urlQuery("text", text))
		var bad []string
		p.Eval(active, &bad)
		if len(bad) == 0 {
			t.Errorf("not noticed: %s", text)
		}
		nodes += len(bad)
	}
	if n := len(p.Dialogs()); n < 3 {
		t.Errorf("%d dialogs were noticed", n)
	}
	if n := len(p.Strangers(srv.URL)); n < 4 {
		t.Errorf("%d requests to somebody else were noticed: %v", n, p.Requests())
	}
	if len(p.Complaints()) == 0 {
		t.Error("no complaint was noticed")
	}
	t.Logf("without protection: %d active nodes, %d dialogs, %d requests to somebody else", nodes, len(p.Dialogs()), len(p.Strangers(srv.URL)))
}
