package web

import (
	"net/url"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Below an answer there is a box for the next question, which continues the conversation; what comes of it leads back.
func TestAskOn(t *testing.T) {
	w, people := newTeam(t, nil, map[string][]string{"ann": asker, "bob": asker})
	ann, bob := people["ann"], people["bob"]
	first := w.run("ann", "What gives Deseret Valley its water?")
	_, text := ann.get(path(first, ""))
	has(t, text, `name="follow" value="`+first.String()+`"`, `name="researcher" value="files"`, `id="go-on" name="question" required maxlength="500"`)
	status, to, _ := ann.post("/ask", url.Values{"question": {"and <b>Ogden</b> Valley?"}, "follow": {first.String()}, "researcher": {"files"}})
	if status != 303 {
		t.Fatalf("%d", status)
	}
	asked := w.actor.asked[len(w.actor.asked)-1].Request
	if asked.Follow != first.String() {
		t.Errorf("asked %+v", asked)
	}
	id, err := marchwarden.ParseTraceID(strings.TrimPrefix(to, "/runs/"))
	if err != nil {
		t.Fatal(err)
	}
	w.ended(id)
	_, text = ann.get(path(id, ""))
	has(t, text, `aria-label="Earlier in this conversation"`, `href="/runs/`+first.String()+`"`, "What gives Deseret Valley its water?", "asked as:", "and &lt;b&gt;Ogden&lt;/b&gt; Valley?")
	_, text = ann.get("/history")
	has(t, text, "Ogden")

	// What is wrong with it is told on the form, which still continues the conversation.
	_, _, text = ann.post("/ask", url.Values{"question": {" "}, "follow": {first.String()}, "researcher": {"files"}})
	has(t, text, "must not be blank", `name="follow" value="`+first.String()+`"`)
	// It is nobody else's, whether there is such a run or not.
	for _, follow := range []string{first.String(), idOf(77).String()} {
		if status, _, _ := bob.post("/ask", url.Values{"question": {"and in Ogden?"}, "follow": {follow}, "researcher": {"files"}}); status != 404 {
			t.Errorf("followed %s: %d", follow, status)
		}
	}
	if status, _, text := bob.post("/ask", url.Values{"question": {"and?"}, "follow": {"last"}, "researcher": {"files"}}); status != 422 || !strings.Contains(text, "not a trace id") {
		t.Errorf("%d", status)
	}
}
