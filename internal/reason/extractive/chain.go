package extractive

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Limits of chains.
const (
	chainLeads = 80 // names that may tie two windows together
	chainReads = 4  // windows that are read again, with a name put in the question
	chainLeast = -2 // what the reader must give the end for answering,
	chainSurer = 1  // how much surer, in log-odds, that reading must be than any of the question as it stands
)

// What a chain is worth before its end is read. Fitted on HotpotQA and one half of MuSiQue.
const (
	chainBoth  = 2.3   // share of the question that both windows hold together
	chainEach  = 1.4   // the lesser of the shares that only one of them holds
	chainLead  = 0.9   // weight of the name as a lead
	chainBegin = 1.5   // the question names the document that the chain begins with
	chainTold  = 0.3   // the question describes what the name stands for
	chainCall  = 0.9   // the name is in the title of the other document
	chainMany  = -0.55 // log of the number of documents that have the name
	chainNear  = 0.6   // cosine of the question and the beginning,
	chainEnd   = 1.8   // and the end
)

// chain is two windows of different documents that answer together: the first gives
// the name of what the question describes, and the second answers the question with the
// name put in.
type chain struct {
	from, to int // windows
	name     string
	asked    string  // the question with the name in it
	worth    float64 // before it is read
	named    bool    // the question names one of their documents
	told     bool    // the question describes something by a name and other words
	reading  reader.Reading
}

// follow looks for two documents that answer together what none of the windows answers
// as surely. Where it finds some, the sentence that answers comes first in the list, and
// the one that gave the name is returned, too.
func (lk *look) follow(ctx context.Context, st *reason.State, list []answer) ([]answer, *answer, error) {
	if st.Reader == nil || len(lk.q.Parts) > 1 || lk.foreign() {
		return list, nil, nil
	}
	best, err := lk.bestChain(ctx, st)
	if err != nil || best == nil || !best.named && !best.told {
		return list, nil, err
	}
	surer := float64(chainSurer)
	if lk.windows[list[0].at].src == lk.windows[best.from].src {
		surer = 0 // what seems to answer is what gives the name
	}
	least := float64(chainLeast)
	for i := range lk.windows {
		if r := lk.windows[i].reading; r != nil {
			least = max(least, r.Answerable+surer)
		}
	}
	if best.reading.Answerable < least {
		return list, nil, nil
	}
	via := lk.giving(best)
	a, b := &lk.windows[best.from], &lk.windows[best.to]
	b.reading, b.near, b.words = &best.reading, max(a.near, b.near), max(a.words, b.words)
	b.held = either(a.held, b.held)
	own := slices.DeleteFunc(lk.answers(), func(x answer) bool { return x.at != best.to })
	if err := lk.closer(ctx, st, best.asked, own); err != nil || len(own) == 0 {
		return list, nil, err
	}
	rest := slices.DeleteFunc(list, func(x answer) bool { return x.span == own[0].span && x.at == own[0].at })
	return append(own[:1], rest...), &via, nil
}

// bestChain reads the ends of the most promising chains with their names in the question.
func (lk *look) bestChain(ctx context.Context, st *reason.State) (*chain, error) {
	list := lk.chains(lk.leads(trail(lk.q, st)))
	type read struct {
		asked string
		to    int
	}
	readings := map[read]reader.Reading{}
	var best *chain
	for i := range list {
		c := &list[i]
		key := read{c.asked, c.to}
		if _, ok := readings[key]; !ok {
			if len(readings) == chainReads {
				break
			}
			w := &lk.windows[c.to]
			rs, err := st.Reader.Read(ctx, c.asked, []reader.Passage{{Heading: w.Path, Text: w.Text}})
			if err != nil {
				return nil, err
			}
			readings[key] = rs[0]
		}
		c.reading = readings[key]
		if best == nil || c.reading.Answerable > best.reading.Answerable {
			best = c
		}
	}
	return best, nil
}

// chains are the pairs of windows that share a name which the question lacks, the most
// promising first.
func (lk *look) chains(leads []lexicon.Lead) []chain {
	var out []chain
	for _, l := range leads[:min(chainLeads, len(leads))] {
		from, spread := -1, map[*evidence.Source]bool{}
		var to []int
		for i := range lk.windows {
			w := &lk.windows[i]
			has := says(w.Path+"\n"+w.Text, l.Name)
			switch {
			case w.src.Page.Locator == l.Source:
				if from < 0 || lk.givesMore(i, from, l.Name) {
					from = i
				}
			case has:
				to = append(to, i)
			}
			if has {
				spread[w.src] = true
			}
		}
		for _, i := range to {
			if from < 0 {
				break
			}
			if c := lk.chain(l, from, i, len(spread)); c.asked != "" {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b chain) int { return cmp.Compare(b.worth, a.worth) })
	return out
}

// givesMore reports that window i gives a name rather than window k of the same document.
func (lk *look) givesMore(i, k int, name string) bool {
	a, b := &lk.windows[i], &lk.windows[k]
	return cmp.Or(cmp.Compare(number(says(a.Path+"\n"+a.Text, name)), number(says(b.Path+"\n"+b.Text, name))), cmp.Compare(lk.share(a.held), lk.share(b.held))) > 0
}

// chain weighs two windows with a name in common that stands in so many documents.
func (lk *look) chain(l lexicon.Lead, from, to, spread int) chain {
	a, b := &lk.windows[from], &lk.windows[to]
	c := chain{from: from, to: to, name: l.Name}
	both := lk.share(either(a.held, b.held))
	begins := says(lk.q.Text, a.src.Page.Title)
	c.named = begins || says(lk.q.Text, b.src.Page.Title)
	tells := map[string]float64{}
	for t, tm := range lk.q.Terms {
		tells[tm.Stem] = lk.idf[t] * (a.held[t] - b.held[t]) / max(lk.total, 1e-9)
	}
	var described string
	described, c.asked = lexicon.PutName(lk.q.Text, l.Name, func(stem string) float64 { return tells[stem] })
	name, noun, rest, other := false, false, false, false
	held, has := lk.holds(described), lk.holds(l.Name)
	for t, tm := range lk.q.Terms {
		name = name || held[t] == 1 && tm.Name
		noun = noun || held[t] == 1 && !tm.Name
		rest = rest || held[t] < 1
		other = other || held[t] == 1 && has[t] < 1
	}
	if !other || !rest { // it is called that in the question, or nothing else is asked
		c.asked = ""
	}
	// "the director of Harbour Lights", "Gisvi's city of birth"
	c.told = name && noun && (strings.IndexFunc(described, unicode.IsLower) == 0 || strings.Contains(described, "'s ") || strings.Contains(described, "’s "))
	c.worth = chainBoth*both + chainEach*(both-max(lk.share(a.held), lk.share(b.held))) + chainLead*l.Weight + chainBegin*number(begins) +
		chainTold*number(c.told) + chainCall*number(says(b.src.Page.Title, l.Name)) + chainMany*math.Log(float64(spread)) + chainNear*a.near + chainEnd*b.near
	return c
}

// giving is the sentence that gives the name of a chain.
func (lk *look) giving(c *chain) answer {
	var best answer
	top := -1.0
	for _, u := range lk.units(c.from) {
		if v := number(says(u.text, c.name)) + lk.share(lk.holds(lk.windows[c.from].Path+"\n"+u.text)); v > top {
			best, top = answer{unit: u}, v
		}
	}
	return best
}

func either(a, b []float64) []float64 {
	out := slices.Clone(a)
	for t := range out {
		out[t] = max(a[t], b[t])
	}
	return out
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
