package researcher_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// whole is a reply with everything that an answer can have: five claims, and two
// items of each other list.
func whole(turn llmtest.Turn) object {
	ids, texts := shown(turn)
	id := func(i int) string { return ids[i%len(ids)] }
	var claims []any
	for i := range 5 {
		claims = append(claims, object{"text": texts[i%len(texts)], "passages": []any{id(i)}, "new_paragraph": i == 2})
	}
	var gaps, discoveries, questions []any
	for i := range 2 {
		gaps = append(gaps, object{"topic": fmt.Sprint("gap number ", i), "category": "source_not_found", "detail": "it is not there"})
		discoveries = append(discoveries, object{"type": "new_source", "researcher": "arxiv", "query": fmt.Sprint("lead number ", i), "reason": "a passage names it", "passage": id(i)})
		questions = append(questions, object{"question": fmt.Sprint("question number ", i), "context": "it stays open", "priority": "high", "passage": id(i)})
	}
	return object{"claims": claims, "gaps": gaps, "discoveries": discoveries, "open_questions": questions}
}

// bad are values that belong nowhere; gone leaves the field out.
type gone struct{}

var bad = []any{gone{}, nil, 7, -1e300, true, "", "nonsense", []any{}, object{}, []any{nil, 3, object{}}, object{"text": object{"passages": 1}}, strings.Repeat("far too long ", 2000)}

// place is a field of a reply: of an item of a list, or the item itself when field
// is "", or the list itself when item is negative.
type place struct {
	list  string
	item  int
	field string
}

func places() []place {
	fields := map[string][]string{
		"claims": {"", "text", "passages", "new_paragraph"}, "gaps": {"", "topic", "category", "detail"},
		"discoveries": {"", "type", "researcher", "query", "reason", "passage"}, "open_questions": {"", "question", "context", "priority", "passage"},
	}
	var out []place
	for _, list := range []string{"claims", "gaps", "discoveries", "open_questions"} {
		if list != "claims" {
			out = append(out, place{list, -1, ""})
		}
		for _, field := range fields[list] {
			out = append(out, place{list, 1, field})
		}
	}
	return out
}

// spoil puts a bad value into a place of a reply.
func (p place) spoil(reply object, value any) {
	items, _ := reply[p.list].([]any)
	switch _, leave := value.(gone); {
	case p.item < 0 && leave:
		delete(reply, p.list)
	case p.item < 0:
		reply[p.list] = value
	case p.field == "" && leave:
		reply[p.list] = slices.Delete(items, p.item, p.item+1)
	case p.field == "":
		items[p.item] = value
	case leave:
		delete(items[p.item].(object), p.field)
	default:
		items[p.item].(object)[p.field] = value
	}
}

// One bad field in an answer loses at most its item: every other claim keeps its
// citations, and every other list its items.
func TestOneBadField(t *testing.T) {
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	var runs atomic.Int64
	step := size(1, 3, 12) // every value at some place, and every place with some
	t.Run("fields", func(t *testing.T) {
		for n, p := range places() {
			t.Run(fmt.Sprintf("%s %d %s", p.list, p.item, p.field), func(t *testing.T) {
				t.Parallel()
				wire := []llmtest.Wire{llmtest.WireOpenAI, llmtest.WireAnthropic}[n%2]
				var value any // the run's; runs of this lab follow each other
				spoilt := false
				l := newLab(t, webtest.Biotech(), func(turn llmtest.Turn) llmtest.Said {
					switch webtest.SiteOf(turn) {
					case webtest.SiteJudge:
						return allSupported(nil, turn)
					case webtest.SiteStep:
						return webtest.Obedient(turn)
					}
					good := whole(turn)
					if spoilt {
						p.spoil(good, value)
					}
					raw, err := json.Marshal(good)
					if err != nil {
						panic(err)
					}
					return llmtest.Said{Text: string(raw)}
				}, options{wire: wire, extract: x})
				req := marchwarden.Request{Question: webtest.Startups}
				want := l.ask(t, req)
				if len(want.Claims) != 5 || len(want.DiscoveryEvents) < 2 || len(want.OpenQuestions) != 2 {
					t.Fatalf("a good answer gives %+v", want)
				}
				for i := n % step; i < len(bad); i += step {
					value = bad[i]
					spoilt = true
					kept(t, p, value, want, l.ask(t, req))
					runs.Add(1)
				}
			})
		}
	})
	t.Logf("one bad field: %d fields, %d runs", len(places()), runs.Load())
}

// kept checks that got has everything of want, but for the item at p.
func kept(t *testing.T, p place, value any, want, got *marchwarden.Result) {
	t.Helper()
	for i, c := range want.Claims {
		if p.list == "claims" && i == p.item {
			continue
		}
		at := slices.IndexFunc(got.Claims, func(g marchwarden.Claim) bool { return g.Text == c.Text })
		if at < 0 || len(got.Claims[at].Citations) == 0 {
			t.Errorf("with %.60v the claim %q is lost; gaps %+v", value, c.Text, got.Gaps)
			continue
		}
		if a, b := got.Citations[got.Claims[at].Citations[0]-1], want.Citations[c.Citations[0]-1]; a.RawExcerpt != b.RawExcerpt || a.Locator != b.Locator {
			t.Errorf("with %.60v the claim %q cites %q", value, c.Text, a.RawExcerpt)
		}
	}
	lost := func(list, what string, i int, found bool) {
		t.Helper()
		if !found && !(p.list == list && (p.item == i || p.item < 0)) {
			t.Errorf("with %.60v the %s number %d is lost", value, what, i)
		}
	}
	for i := range 2 {
		lost("gaps", "gap", i, slices.ContainsFunc(got.Gaps, func(g marchwarden.Gap) bool { return g.Topic == fmt.Sprint("gap number ", i) }))
		lost("discoveries", "lead", i, slices.ContainsFunc(got.DiscoveryEvents, func(d marchwarden.DiscoveryEvent) bool { return d.Query == fmt.Sprint("lead number ", i) }))
		lost("open_questions", "question", i, slices.ContainsFunc(got.OpenQuestions, func(q marchwarden.OpenQuestion) bool { return q.Question == fmt.Sprint("question number ", i) }))
	}
}
