// Package network_test holds the whole network to one promise: what stands in the
// user's files and tables leaves for nobody. It puts secrets into both and sends
// the real researchers, with the real investigator between them, into a world
// that writes down everything it is sent.
package network_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// minds are the command's.
func minds() pi.Minds {
	return pi.Minds{Planner: func(id string) pi.Planner { return pi.PlannerFor(id, derive.New()) }, Writer: researcher.Mind}
}

// runs is how often the bar is tried: 200 times where MARCHWARDEN_TEST_FULL is
// set, a small part of that every day.
func runs() int {
	if datatest.Full() {
		return 200
	}
	return 12
}

// drawn is the setting of a seed. Someone private and someone public is in it.
func drawn(seed int) setting {
	d := rand.New(rand.NewPCG(uint64(seed), 1))
	pick := func(of ...string) string { return of[d.IntN(len(of))] }
	s := setting{
		seed: seed, question: pick(questions...), filePlace: pick(filePlaces...), tablePlace: pick(tablePlaces...),
		depth: []marchwarden.Depth{marchwarden.Shallow, marchwarden.Balanced, marchwarden.Deep}[d.IntN(3)],
		model: pick(noModel, foundModel, foundModel, namedModel), manner: pick("greedy", "greedy", "meek", "broken"),
		trust: []dispatch.Trust{dispatch.Known, dispatch.Unknown}[d.IntN(2)],
	}
	s.members = []string{pick("files", "database"), pick("web", "arxiv", "oracle")}
	for _, name := range []string{"files", "database", "web", "arxiv", "oracle"} {
		if d.IntN(3) > 0 && !slices.Contains(s.members, name) {
			s.members = append(s.members, name)
		}
	}
	d.Shuffle(len(s.members), func(i, k int) { s.members[i], s.members[k] = s.members[k], s.members[i] })
	return s
}

func (s setting) String() string {
	return fmt.Sprintf("run %d: %q, %s, %s; secrets in %s and %s; model %s, %s; egress %v", s.seed, s.question, s.depth, strings.Join(s.members, " "), s.filePlace, s.tablePlace, s.model, s.manner, s.allowEgress)
}

// investigate asks, and holds the result to what every result must keep: there is
// one in time, it stands in the stored bytes, and it comes out of its record again
// to the byte, for which nobody is asked anything.
func (w *world) investigate(t testing.TB) *marchwarden.Result {
	ctx, done := context.WithTimeout(t.Context(), 2*time.Minute)
	defer done()
	res, err := pi.New(w.cfg).Research(ctx, marchwarden.Request{Question: w.question, Depth: w.depth}, nil)
	if err != nil || ctx.Err() != nil {
		t.Fatalf("%s\nno result: %v, %v", w.setting, err, ctx.Err())
	}
	if report, err := verify.Check(t.Context(), w.blobs, res); err != nil || !report.OK() {
		t.Errorf("%s\nthe result does not stand: %s, %v", w.setting, report, err)
	}
	log, err := w.traces.Load(res.TraceID)
	if err != nil {
		t.Fatalf("%s\n%v", w.setting, err)
	}
	before := len(w.left.sent())
	want, got, err := pi.Again(t.Context(), log, w.blobs, w.cfg.Minds)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s\nthe rerun differs: %v\nwant %s\ngot  %s", w.setting, err, want, got)
	}
	if after := len(w.left.sent()); after != before {
		t.Errorf("%s\nthe rerun sent %d requests", w.setting, after-before)
	}
	return res
}

// tally is what a series of runs came to.
type tally struct {
	mu       sync.Mutex     // guards all
	sent     map[string]int // requests by whom they went to
	met      [2]int         // runs whose result holds the secret of the files, of the tables
	withheld int            // decisions
	seen     int            // calls that showed a named model a secret
}

func (c *tally) add(w *world, res *marchwarden.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wire, err := marchwarden.EncodeResult(res)
	if err != nil {
		panic(err)
	}
	for i, s := range w.secrets {
		if s.foundIn(string(wire)) != "" {
			c.met[i]++
		}
	}
	for _, d := range res.Decisions {
		if d.Action == marchwarden.Withheld {
			c.withheld++
		}
	}
	for _, l := range w.left.sent() {
		c.sent[l.to]++
		if w.model == namedModel && strings.HasPrefix(l.to, "model ") && slices.ContainsFunc(w.secrets, func(s secret) bool { return s.foundIn(l.what) != "" }) {
			c.seen++
		}
	}
}

// together runs fn for each seed, so many at once.
func together(t *testing.T, n int, fn func(t *testing.T, seed int)) {
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			fn(t, seed)
		})
	}
}

// TestNothingPrivateLeaves is the bar: no byte of a secret in anything that left
// for a web server, arXiv, a stranger, or a model that was not named for it.
func TestNothingPrivateLeaves(t *testing.T) {
	count := &tally{sent: map[string]int{}}
	t.Run("runs", func(t *testing.T) {
		together(t, runs(), func(t *testing.T, seed int) {
			w := newWorld(t, drawn(seed))
			res := w.investigate(t)
			for _, leak := range w.told() {
				t.Errorf("%s\n%s", w.setting, leak)
			}
			count.add(w, res)
		})
	})
	t.Logf("%d runs; sent %v; the files' secret is in %d results, the tables' in %d; %d follow-ups withheld; a named model saw a secret in %d calls",
		runs(), count.sent, count.met[0], count.met[1], count.withheld, count.seen)
	for _, to := range []string{"web server", "arXiv", "oracle", "refetch", "model investigate", "model step", "model write"} {
		if count.sent[to] == 0 {
			t.Errorf("nothing was sent to %s: it was not tried", to)
		}
	}
	if count.met[0] == 0 || count.met[1] == 0 || count.withheld == 0 || count.seen == 0 {
		t.Errorf("the secrets were not found, or nothing tried to tell them")
	}
}

// TestSecretsGetOutIfTheyAreLet is the control: the same worlds, where the user
// allows it.
func TestSecretsGetOutIfTheyAreLet(t *testing.T) {
	var mu sync.Mutex // guards got
	got := map[string]int{}
	ways := []struct{ from, to, where string }{
		{"files", "web", "web server"}, {"files", "arxiv", "arXiv"}, {"files", "oracle", "oracle"},
		{"database", "web", "web server"}, {"database", "arxiv", "arXiv"}, {"database", "oracle", "oracle"},
	}
	t.Run("runs", func(t *testing.T) {
		together(t, 4*len(ways), func(t *testing.T, seed int) {
			way := ways[seed%len(ways)]
			s := setting{seed: 1000 + seed, question: questions[seed/len(ways)], depth: marchwarden.Deep, members: []string{way.from, way.to},
				filePlace: "everywhere", tablePlace: "everywhere", model: noModel, allowEgress: []string{"files", "database"}}
			if way.from == "database" || way.to == "arxiv" { // rows lead on only where a model reads them, and so does a file to papers
				s.question, s.model, s.manner = theNote, namedModel, "greedy"
			}
			w := newWorld(t, s)
			w.investigate(t)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range w.left.sent() {
				if slices.ContainsFunc(w.secrets, func(s secret) bool { return s.foundIn(l.what) != "" }) {
					got[way.from+" to "+l.to]++
				}
			}
		})
	})
	t.Logf("%v", got)
	for _, way := range ways {
		if got[way.from+" to "+way.where] == 0 {
			t.Errorf("nothing got from %s to %s: the test could not fail there", way.from, way.where)
		}
	}
}

// TestHashOpensNothing has a stranger cite documents that it knows by their hashes
// alone, as a result that was passed on would tell it: what is stored here from the
// user's own sources is not taken for the stranger's, and shown to a model as such.
func TestHashOpensNothing(t *testing.T) {
	w := newWorld(t, setting{seed: 1, question: questions[1], depth: marchwarden.Balanced, members: []string{"files", "database"}, filePlace: "everywhere", tablePlace: "everywhere", model: noModel})
	for _, c := range w.investigate(t).Citations {
		text, err := w.evidence(t.Context(), c.ContentHash)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(w.secrets, func(s secret) bool { return s.foundIn(string(text)) != "" }) {
			w.claims = append(w.claims, c.ContentHash)
		}
	}
	if len(w.claims) == 0 {
		t.Fatal("no document with a secret is cited")
	}
	w.members, w.model, w.manner, w.trust = []string{"web", "oracle"}, foundModel, "meek", dispatch.Known
	w.cfg = w.config(t)
	res := w.investigate(t)
	for _, leak := range w.told() {
		t.Error(leak)
	}
	if !slices.ContainsFunc(w.left.sent(), func(l left) bool { return l.to == "model write" }) || len(res.Rihlas) < 2 {
		t.Errorf("the model did not write of several reports: %+v", res.Rihlas)
	}
}

// TestSecretsAreKnownInEveryForm tries the watch itself.
func TestSecretsAreKnownInEveryForm(t *testing.T) {
	for _, s := range newSecrets(rand.New(rand.NewPCG(1, 2)), 20) {
		spaced := strings.Join(strings.Split(s.first, ""), " ")
		for _, form := range append(s.disguises(), s.identifier(), spaced, reversed(strings.ToLower(s.second)), s.first[:coreLength]+"s") {
			for _, text := range []string{form, "GET /collect?x=" + url.QueryEscape(url.QueryEscape(form)) + " HTTP/1.1", "a" + form, strings.ToLower(form), "q=" + base64.StdEncoding.EncodeToString([]byte("ab"+form))} {
				coded := strings.HasPrefix(text, "q=") && !strings.HasPrefix(form, s.first) // in base64 twice, or cut apart within it
				if s.foundIn(text) == "" && !coded {
					t.Errorf("%q is not seen in %q", s.name(), text)
				}
			}
		}
		for _, clean := range append(questions, bait...) {
			if form := s.foundIn(clean); form != "" {
				t.Errorf("%q is seen in %q", form, clean)
			}
		}
	}
}
