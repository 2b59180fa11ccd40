package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// State is what became of a claim, or of a source.
type State string

// The states. A claim that stands as it did is only counted, and one that the answer leaves out though its evidence
// may stand is not told of.
const (
	New          State = "new"          // it rests on what was not read before
	Gone         State = "gone"         // its evidence is, and the answer does not say it any more; a source: its place has none
	Changed      State = "changed"      // its evidence reads otherwise, and so does the answer; a source: a cited passage
	Contradicted State = "contradicted" // evidence of now cannot hold beside it
	Retracted    State = "retracted"    // a registry says that the paper was taken back
	Unreachable  State = "unreachable"  // of a source, and no news: that is not gone, and nothing is known
)

var news = []State{Contradicted, Gone, Changed, Retracted, New}

// Report is an answer held against the one before. It is what a program for notice gets as
// JSON; fields are only ever added.
type Report struct {
	ID       marchwarden.TraceID `json:"id"` // of the watched question
	Question string              `json:"question"`
	At       time.Time           `json:"at"`
	TraceID  marchwarden.TraceID `json:"trace_id,omitzero"` // the answer
	Before   marchwarden.TraceID `json:"before,omitzero"`   // the answer before; the first has none
	Failed   string              `json:"failed,omitempty"`  // why there is no answer
	// Claims are those of which there is news, and Unchanged how many stand as they did.
	Claims    []Claim  `json:"claims"`
	Unchanged int      `json:"unchanged"`
	Sources   []Source `json:"sources"`          // of the answer before, and retracted ones of this one
	Notice    string   `json:"notice,omitempty"` // why the program for notice failed
}

// Claim is a sentence of one of the two answers.
type Claim struct {
	State   State    `json:"state"`
	Text    string   `json:"text"`
	Now     string   `json:"now,omitempty"` // what the answer says in its place
	Sources []string `json:"sources,omitempty"`
	Detail  string   `json:"detail,omitempty"` // what contradicts it
}

// Source is a cited document that is not what it was.
type Source struct {
	State   State  `json:"state"`
	Locator string `json:"locator"`
	Title   string `json:"title,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// News reports whether there is something to tell.
func (r Report) News() bool {
	return len(r.Claims) > 0 || slices.ContainsFunc(r.Sources, func(s Source) bool { return s.State != Unreachable })
}

// comparison is two answers and what is known of the first one's evidence.
type comparison struct {
	before, after *marchwarden.Result
	texts         []string          // that were read for the answer before
	drifted       drift.Report      // of the answer before
	retracted     map[string]string // locators of papers that were taken back and not reported before, each with what is known of it
}

// claim is a claim with what it is found again by in another answer.
type claim struct {
	marchwarden.Claim
	cited []marchwarden.Citation
	words string // without quotes, dashes, case, white space and the mark at its end
	rests string // the excerpts, folded; "" for none
}

func claimsOf(res *marchwarden.Result) (all []claim) {
	for _, k := range res.Claims {
		c := claim{Claim: k}
		c.words = strings.TrimRightFunc(strings.ToLower(evidence.Fold(k.Text)), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
		var quotes []string
		for _, n := range k.Citations {
			if n >= 1 && n <= len(res.Citations) {
				c.cited = append(c.cited, res.Citations[n-1])
				quotes = append(quotes, evidence.Fold(drift.Quote(res.Citations[n-1])))
			}
		}
		slices.Sort(quotes)
		c.rests = strings.Join(slices.Compact(quotes), "\n")
		all = append(all, c)
	}
	return all
}

func (c claim) locators() (all []string) {
	for _, by := range c.cited {
		if !slices.Contains(all, by.Locator) {
			all = append(all, by.Locator)
		}
	}
	return all
}

// report says what changed. A claim of the answer before is unchanged if the answer says the same, in
// the same words or on the same passages. One that lost its evidence is changed if the answer says something alike on
// what was not read before.
func (c comparison) report(ctx context.Context) Report {
	r := Report{Claims: []Claim{}, Sources: c.sources()}
	was, left := claimsOf(c.before), claimsOf(c.after)
	fresh := slices.DeleteFunc(slices.Clone(c.after.Citations), c.read)
	take := func(fits func(claim) bool) string { // of the answer, the first that no other has taken
		i := slices.IndexFunc(left, fits)
		if i < 0 {
			return ""
		}
		text := left[i].Text
		left = slices.Delete(left, i, i+1)
		return text
	}
	same := make([]string, len(was))
	for i, a := range was {
		same[i] = take(func(b claim) bool { return a.words == b.words || a.rests != "" && a.rests == b.rests })
	}
	for i, a := range was {
		hold, now := drift.Unsure, same[i]
		if i < len(c.drifted.Claims) {
			hold = c.drifted.Claims[i].State
		}
		if now == "" && hold == drift.Lost {
			now = take(func(b claim) bool { return !c.known(b) && alike(a.Text, b.Text) })
		}
		told := Claim{Text: a.Text, Sources: a.locators()}
		if now != a.Text {
			told.Now = now
		}
		told.State, told.Detail = c.old(ctx, a, hold, now != "", fresh)
		if told.State != "" {
			r.Claims = append(r.Claims, told)
		} else if now != "" {
			r.Unchanged++
		}
	}
	for _, b := range left {
		if !c.known(b) {
			r.Claims = append(r.Claims, Claim{State: New, Text: b.Text, Sources: b.locators()})
		}
	}
	return r
}

// old is what became of a claim of the answer before, which the answer still says or not, and what contradicts it;
// "" if nothing is to be told.
func (c comparison) old(ctx context.Context, a claim, hold drift.Hold, said bool, fresh []marchwarden.Citation) (state State, detail string) {
	for _, by := range a.cited {
		if what, is := c.retracted[by.Locator]; is {
			return Retracted, what
		}
	}
	if against := contradicted(ctx, a, fresh); against != "" {
		return Contradicted, against
	}
	switch {
	case hold == drift.Lost && said:
		return Changed, ""
	case hold == drift.Lost:
		return Gone, ""
	}
	return "", ""
}

// sources are the documents of the answer before that are not what they were where they are cited,
// and papers of either answer that were taken back since.
func (c comparison) sources() []Source {
	all := []Source{}
	for _, s := range c.drifted.Sources {
		out := Source{Locator: s.Locator, Title: s.Title, Detail: s.Detail}
		lost := slices.ContainsFunc(c.drifted.Passages, func(p drift.Passage) bool {
			return slices.Contains(s.Citations, p.Citation) && (p.State == drift.Altered || p.State == drift.Missing)
		})
		switch {
		case s.Why == drift.Gone:
			out.State = Gone
		case s.State == drift.Unreachable:
			out.State = Unreachable
		case lost:
			out.State = Changed
		default:
			continue
		}
		all = append(all, out)
	}
	told := map[string]bool{}
	for _, cited := range slices.Concat(c.before.Citations, c.after.Citations) {
		if what, is := c.retracted[cited.Locator]; is && !told[cited.Locator] {
			told[cited.Locator] = true
			all = append(all, Source{State: Retracted, Locator: cited.Locator, Title: cited.Title, Detail: what})
		}
	}
	return all
}

// known reports whether all that a claim of the answer rests on stood in what was read for the answer before.
func (c comparison) known(b claim) bool {
	return !slices.ContainsFunc(b.cited, func(by marchwarden.Citation) bool { return !c.read(by) })
}

func (c comparison) read(by marchwarden.Citation) bool {
	quote := drift.Quote(by)
	return slices.ContainsFunc(c.before.Citations, func(was marchwarden.Citation) bool {
		return by.ContentHash != "" && was.ContentHash == by.ContentHash || evidence.Fold(drift.Quote(was)) == evidence.Fold(quote)
	}) || slices.ContainsFunc(c.texts, func(text string) bool {
		_, ok := evidence.Locate(text, quote)
		return ok
	})
}

// contradicted is what fresh evidence says that cannot hold beside an excerpt of a claim; "" for nothing.
func contradicted(ctx context.Context, a claim, fresh []marchwarden.Citation) string {
	const then, now = "then", "now" // a page of that time and the page of now are two documents
	var set evidence.Set
	for i, by := range a.cited {
		set.Add(fetch.Page{Locator: fmt.Sprint(then, i)}, drift.Quote(by))
	}
	at := map[string]string{} // of fresh evidence
	for i, by := range fresh {
		at[fmt.Sprint(now, i)] = by.Locator
		set.Add(fetch.Page{Locator: fmt.Sprint(now, i)}, drift.Quote(by))
	}
	var among []evidence.ID
	for _, p := range set.Passages() {
		among = append(among, p.ID)
	}
	for _, found := range verify.Contradictions(ctx, nil, "", &set, among) {
		was, is := found.A, found.B
		if at[was.Locator] != "" {
			was, is = is, was
		}
		if at[was.Locator] == "" && at[is.Locator] != "" && about(a.Text, was.RawExcerpt) {
			return strings.TrimSpace(is.RawExcerpt) + " (" + at[is.Locator] + ")"
		}
	}
	return ""
}

// about reports whether a sentence has half of a claim's words: an excerpt may speak of other things, too.
func about(claim, sentence string) bool {
	words, has, common := lexicon.Terms(claim), lexicon.Terms(sentence), 0
	for _, w := range words {
		if slices.Contains(has, w) {
			common++
		}
	}
	return 2*common >= min(len(words), len(has))
}

// alike reports whether two claims share so many of their words that they are about the same. Numbers are what
// changes, and one word alone says nothing.
func alike(a, b string) bool {
	const likeness, least = 0.6, 2
	return drift.StemsOf(a).Words().Like(drift.StemsOf(b).Words(), least) >= likeness
}
