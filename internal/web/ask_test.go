package web

import (
	"net/url"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestAskPage(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	status, text := b.get("/")
	if status != 200 {
		t.Fatalf("%d", status)
	}
	has(t, text, `value="files" checked`, `value="web"`, `value="arxiv" disabled`, "no network", "leaves this machine", "Nothing was asked yet", "extractive", `<textarea id="question" name="question" rows="2" required placeholder="Ask a question" enterkeyhint="go" autofocus`, `<button name="question" value="What &lt;grows&gt;?"`)
	budget, sources := 12345, 7
	id := w.begin(asServer(), marchwarden.Request{Question: question, Context: "I know\nthe river.", Depth: marchwarden.Shallow, Constraints: &marchwarden.Constraints{TokenBudget: &budget, MaxSources: &sources}})
	w.ended(id)
	_, text = b.get("/?from=" + id.String())
	has(t, text, question+"</textarea>", "I know\nthe river.</textarea>", `value="shallow" checked`, `value="12345"`, `value="7"`, "Recent")
	for _, from := range []string{"x", idOf(5).String(), "%00"} {
		status, text := b.get("/?from=" + from)
		if status != 200 {
			t.Errorf("from %s: %d", from, status)
		}
		lacks(t, text, question+"</textarea>")
	}
	// Those that go on do not push out those that have ended.
	for i := range recentRuns + 1 {
		w.writes(idOf(100+i), "Goes on?")
	}
	_, text = b.get("/")
	has(t, text, "At work now", question)
}

// What is wrong is told at its field, and what was typed is there again.
func TestFaultsOfAQuestion(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	full := func() url.Values {
		return url.Values{"question": {"Typed <question>?"}, "context": {"typed context"}, "depth": {"deep"}, "token_budget": {"4321"}, "max_sources": {"9"}, "researcher": {"files", "web"}}
	}
	typed := []string{"Typed &lt;question&gt;?</textarea>", "typed context</textarea>", `value="deep" checked`, `value="4321"`, `value="9"`, `value="files" checked`, `value="web" checked`}
	for _, c := range []struct {
		field, value, shown, words string
		at                         string // the field, if it is not the one that was typed
	}{
		{"question", " \r\n ", "", "must not be blank", ""},
		{"question", strings.Repeat("é", 501), strings.Repeat("é", 501) + "</textarea>", "must be at most 500 characters, has 501", ""},
		{"question", "\xff\xfe", "", "must be valid UTF-8", ""},
		{"context", strings.Repeat("x", 2001), strings.Repeat("x", 2001) + "</textarea>", "must be at most 2000 characters, has 2001", ""},
		{"depth", "<b>bottomless", "", "must be shallow, balanced or deep", ""},
		{"token_budget", "12 apples", `value="12 apples"`, "must be a whole number", ""},
		{"token_budget", "1e3", `value="1e3"`, "must be a whole number", ""},
		{"token_budget", "99999999999999999999", `value="99999999999999999999"`, "must be a whole number", ""},
		{"token_budget", "999", `value="999"`, "must be at least 1000, not 999", ""},
		{"max_sources", "-1", `value="-1"`, "must be at least 1, not -1", ""},
		{"max_sources", `"><script>`, `value="&#34;&gt;&lt;script&gt;"`, "must be a whole number", ""},
		{"researcher", "", "", "choose at least one", ""},
	} {
		form := full()
		form.Set(c.field, c.value)
		if c.field == "researcher" {
			form.Del(c.field)
		}
		status, _, text := b.post("/ask", form)
		if status != 422 {
			t.Errorf("%s %q: %d", c.field, c.value, status)
		}
		has(t, text, `id="`+c.field+`-fault"><strong>`+c.words, c.shown)
		lacks(t, text, "<script>\"", "<b>bottomless")
		for _, same := range typed {
			own := map[string]string{"question": "question", "context": "context", "depth": "deep", "token_budget": "4321", "max_sources": `"9"`, "researcher": "checked"}[c.field]
			if !strings.Contains(same, own) {
				has(t, text, same)
			}
		}
	}
	form := full()
	form.Set("token_budget", "many")
	form.Set("max_sources", "some")
	form.Set("question", "")
	_, _, text := b.post("/ask", form)
	has(t, text, `id="token_budget-fault"`, `id="max_sources-fault"`, `id="question-fault"`) // all at once
	if len(w.actor.asked) > 0 {
		t.Errorf("it was asked: %+v", w.actor.asked)
	}
}

func TestSubmit(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	status, to, _ := b.post("/ask", url.Values{"question": {" What grows?\r\nAnd why?\rHow? "}, "context": {"a\r\nb"}, "token_budget": {" 5000 "}, "researcher": {"files", "web", "files"}})
	if status != 303 {
		t.Fatalf("%d", status)
	}
	w.ended(mustID(t, to))
	q := w.actor.asked[0]
	if q.Request.Question != "What grows?\nAnd why?\nHow?" || q.Request.Context != "a\nb" || *q.Request.Constraints.TokenBudget != 5000 || q.Request.Constraints.MaxSources != nil || strings.Join(q.Researchers, " ") != "files web" {
		t.Errorf("%+v %+v", q, q.Request.Constraints)
	}
	for _, c := range []struct {
		err    error
		status int
		words  string
	}{
		{&marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "--researchers", Message: "there is no researcher called nobody", Hint: "see the list"}, 422, `id="researcher-fault"><strong>there is no researcher called nobody</strong> (see the list)`},
		{&marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "--model", Message: "is not known"}, 422, "--model: is not known"},
		{&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "server busy", Hint: "call again"}, 422, "server busy"},
		{&marchwarden.Error{Code: marchwarden.CodeDenied, Message: "not you"}, 403, "not you"},
		{strange("no code"), 500, inTheLog},
	} {
		w.actor.refuse = c.err
		status, _, text := b.post("/ask", url.Values{"question": {"Kept?"}, "researcher": {"nobody"}})
		if status != c.status {
			t.Errorf("%v: %d", c.err, status)
		}
		has(t, text, c.words)
		if c.status == 422 {
			has(t, text, "Kept?</textarea>")
		}
		lacks(t, text, "no code")
	}
}

// strange is an error that is none of ours.
type strange string

func (s strange) Error() string { return string(s) }

func TestATooLargeForm(t *testing.T) {
	w := newWorld(t, nil)
	status, _, text := w.local().post("/ask", url.Values{"question": {strings.Repeat("q", 1<<20)}, "researcher": {"files"}})
	if status != 413 || len(w.actor.asked) > 0 {
		t.Errorf("%d %s", status, mainOf(text))
	}
	lacks(t, text, "qqqq")
}
