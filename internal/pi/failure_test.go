package pi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

const gallium = "What is the melting point of gallium?"

// TestThreeOfFourFail has one researcher killed in the middle of its call, one that
// hangs and one that gives garbage: the fourth one's evidence is the answer, and
// each of the others is a gap that names it.
func TestThreeOfFourFail(t *testing.T) {
	onRoads(t, func(t *testing.T, o *office) {
		together(o.times(100, 9), 10, func(i int) { threeOfFour(t, o, []string{"junk", "schema", "lie"}[i%3]) })
	}, overFiles)
}

func threeOfFour(t *testing.T, o *office, garbage string) {
	const truth = "Gallium melts at 29.76 degrees Celsius."
	bad := role{Member: dispatch.Member{Name: "garbler"}}
	switch garbage {
	case "junk":
		bad.Acts = map[string][]act{"": {{How: "junk", Lasts: 20 * time.Millisecond}}}
	case "schema":
		bad.Play = "raw"
	case "lie":
		lie := answering(doc{At: "https://garbler.example/", Text: "Gallium melts at 1,000 degrees Celsius."})
		lie.Result.Citations[0].ContentHash = answering(doc{Text: "Nothing of the kind is said here."}).Result.Citations[0].ContentHash
		lie.Stored = []string{"Nothing of the kind is said here."}
		bad.Acts = map[string][]act{"": {lie}}
	}
	good := role{Member: dispatch.Member{Name: "good"}, Acts: map[string][]act{"": {answering(doc{At: "https://good.example/gallium", Text: truth}).lasting(100 * time.Millisecond)}}}
	tr := gather(t,
		role{Member: dispatch.Member{Name: "killed"}, Acts: map[string][]act{"": {{How: "kill", Lasts: 50 * time.Millisecond}}}},
		role{Member: dispatch.Member{Name: "hanging"}, Acts: map[string][]act{"": {{How: "hang"}}}},
		bad, good)
	defer tr.Close()
	tr.warm(t)
	const deadline = 4 * time.Second
	cfg := pi.Config{Dispatcher: tr, Options: pi.Options{Deadline: deadline}}
	began := time.Now()
	res := o.ask(t, cfg, marchwarden.Request{Question: gallium})
	if took := time.Since(began); took > deadline+20*time.Second {
		t.Errorf("it took %s: %+v", took, res.Rihlas)
	}
	if len(res.Citations) != 1 || res.Citations[0].RawExcerpt != truth || !strings.Contains(res.Answer, truth) || res.Citations[0].Unchecked {
		t.Errorf("the answer is %q on %+v", res.Answer, res.Citations)
	}
	for _, name := range []string{"killed", "hanging", "garbler"} {
		if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Topic+g.Detail, name) }) {
			t.Errorf("no gap names %s: %+v", name, res.Gaps)
		}
	}
	if slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Topic == "researcher good" }) {
		t.Errorf("a gap names the one that answered: %+v", res.Gaps)
	}
}
