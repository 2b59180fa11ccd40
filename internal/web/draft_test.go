package web

import (
	"context"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What a model has written so far is on the page of its run, marked and escaped, until the checked
// answer takes its place. It is in no record.
func TestDraft(t *testing.T) {
	w := newWorld(t, nil)
	drafts, end := make(chan marchwarden.Event), make(chan struct{})
	w.asks = func(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
		id, _ := marchwarden.ChosenTraceID(ctx)
		out := w.writes(id, req.Question)
		for {
			select {
			case e := <-drafts:
				sink(e)
			case <-end:
				res := &marchwarden.Result{TraceID: id, Answer: "Checked.", CostMetadata: marchwarden.CostMetadata{ModelID: "m"}}
				w.ends(out, res)
				return res, out.Close()
			}
		}
	}
	b := w.local()
	_, to, _ := b.post("/ask", map[string][]string{"question": {question}, "researcher": {"files"}})
	send := func(stage marchwarden.Stage, text string) { drafts <- marchwarden.Event{Stage: stage, Draft: text} }
	send(marchwarden.StageSynthesize, "Farmers <b>grow</b>\x1b[31m alfalfa.\n\nThey \u202egrow\r\nbarley.")
	text := b.until(to, "A draft is shown that is not yet checked")
	has(t, text, "Draft, not yet checked", "<p>Farmers &lt;b&gt;grow&lt;/b&gt;", "<p>They", `<div class="work">`)
	lacks(t, text, "\x1b", "\u202e", "<b>grow")
	send(marchwarden.StageSynthesize, strings.Repeat("x", 5000)+" The end.")
	text = b.until(to, "The end.")
	if n := strings.Count(text, "x"); n > 4100 {
		t.Errorf("%d characters of a long draft are shown", n)
	}
	send(marchwarden.StageCheck, "")
	send(marchwarden.StageCheck, "") // the first was heard
	_, text = b.get(to)
	has(t, text, "The end.")
	close(end)
	w.ended(mustID(t, to))
	_, text = b.get(to)
	has(t, text, "Checked.")
	lacks(t, text, "Draft, not yet", "alfalfa", "The end.")
}
