package extractive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Most of each kind that a draft reports.
const (
	maxOpen   = 3
	maxEvents = 3
	// leadSentences is how many of the best sentences are looked through for leads
	// and hedges: what they say further down hardly bears on the question.
	leadSentences = 80
	goodMatch     = 0.2 // Match from which missing words are taken for said otherwise
	closest       = 2   // passages that are shown with a refusal
)

// refuse makes the draft of a question that nothing read answers, or for which there
// was no room to read at all. What comes nearest is shown as such.
func (lk *look) refuse(st *reason.State, list []answer, unread []window, match float64) reason.Draft {
	d := reason.Draft{Match: match}
	if len(list) == 0 && len(unread) > 0 {
		d.Refusal = fmt.Sprintf("The token budget of %d left no room to read what was found for this question.", st.Limits.TokenBudget)
		d.Gaps = []marchwarden.Gap{{Topic: lk.q.Topic, Category: marchwarden.BudgetExhausted,
			Detail: fmt.Sprintf("%s found and none could be read within the token budget", plural(len(unread), "passage was", "passages were"))}}
		return d
	}
	read := plural(len(st.Evidence.Sources()), "document", "documents")
	d.Refusal = fmt.Sprintf("I don't know. I looked through %s and found no answer.", read)
	if len(st.Evidence.Sources()) == 0 {
		d.Refusal = "I don't know. No document was found that has to do with the question."
	}
	for _, a := range list {
		if len(d.Closest) < closest && a.feats[featThin] == 0 && !slices.ContainsFunc(d.Closest, func(n reason.Near) bool { return n.Passage == a.passage.ID }) {
			d.Closest = append(d.Closest, reason.Near{Passage: a.passage.ID, Span: lk.cited(a), Reason: "nearest to the question of what was read"})
		}
	}
	detail := read + " read, and none answers the question"
	if lacking := lk.lacking(false); len(lacking) > 0 {
		detail += "; absent from what was read: " + listed(lacking, 6)
	}
	d.Gaps = append(d.Gaps, marchwarden.Gap{Topic: lk.q.Topic, Category: marchwarden.SourceNotFound, Detail: detail})
	if len(unread) > 0 {
		d.Gaps = append(d.Gaps, unreadGap(st, lk.q, unread))
	}
	d.OpenQuestions, d.Discoveries = lk.openQuestions(st, nil), lk.discoveries(st)
	return d
}

func unreadGap(st *reason.State, q *question.Question, unread []window) marchwarden.Gap {
	var names []string
	for _, w := range unread {
		if name := nameOf(w.src); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return marchwarden.Gap{Topic: q.Topic, Category: marchwarden.BudgetExhausted,
		Detail: fmt.Sprintf("%s left unread within the token budget of %d: %s", plural(len(unread), "relevant passage was", "relevant passages were"),
			st.Limits.TokenBudget, listed(names, 4))}
}

// lacking are the words of the question, as written, that nothing read holds.
// Words of one name are given as the name. Strict leaves all but names and
// numbers out.
func (lk *look) lacking(strict bool) []string {
	held := lk.anywhere()
	var out []string
	for t, tm := range lk.q.Terms {
		if held[t] > 0 || question.Light(tm.Stem) || question.Vague(tm.Stem) || strict && !tm.Name && !tm.Number {
			continue
		}
		word := cmp.Or(lk.q.NameWith(tm), tm.Text)
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// gaps says what the answer leaves out: parts without a sentence, names and numbers
// that nothing read holds, and what the budget left unread.
func (lk *look) gaps(st *reason.State, picks []answer, unread []window, match float64) []marchwarden.Gap {
	var out []marchwarden.Gap
	short := len(unread) > 0
	if len(lk.q.Parts) > 1 {
		for _, p := range lk.unanswered(picks) {
			out = append(out, partGap(lk.q.Parts[p], short, st))
		}
	}
	if short {
		out = append(out, unreadGap(st, lk.q, unread))
	}
	if lacking := lk.lacking(match >= goodMatch); len(lacking) > 0 {
		out = append(out, marchwarden.Gap{Topic: listed(lacking, 6), Category: marchwarden.SourceNotFound,
			Detail: fmt.Sprintf("asked about, but absent from the %s read", plural(len(st.Evidence.Sources()), "document", "documents"))})
	}
	return out
}

// unanswered are the parts that no pick speaks to.
func (lk *look) unanswered(picks []answer) []int {
	var out []int
	for p := range lk.q.Parts {
		if !slices.ContainsFunc(picks, func(k answer) bool { return lk.partShare(p, k.at) >= partFloor }) {
			out = append(out, p)
		}
	}
	return out
}

func partGap(p question.Part, short bool, st *reason.State) marchwarden.Gap {
	if short {
		return marchwarden.Gap{Topic: p.Label, Category: marchwarden.BudgetExhausted,
			Detail: fmt.Sprintf("not covered before the token budget of %d ended the reading", st.Limits.TokenBudget)}
	}
	return marchwarden.Gap{Topic: p.Label, Category: marchwarden.SourceNotFound, Detail: "no sentence of the documents read answers this part of the question"}
}

func nameOf(src *evidence.Source) string {
	if src.Page.Title != "" {
		return src.Page.Title
	}
	return path.Base(src.Page.Locator)
}

// quarrels are the contradictions among what was looked at that bear on the question.
func (lk *look) quarrels(ctx context.Context, st *reason.State) []marchwarden.Contradiction {
	var among []evidence.ID
	for i := range lk.windows {
		for _, k := range lk.windows[i].Passages {
			among = append(among, lk.windows[i].src.Passages[k].ID)
		}
	}
	return verify.Contradictions(ctx, st.Reader, lk.q.Text, st.Evidence, among)
}

// hedges are ways in which a source leaves something open, and how to ask on.
// The first that fits a sentence is used.
var hedges = []struct {
	words *regexp.Regexp
	ask   string
}{
	{regexp.MustCompile(`(?i)\b(uncertain|unclear|unsettled|cannot be predicted)\b`), "What would settle it"},
	{regexp.MustCompile(`(?i)\b(unknown|not (yet )?known|poorly understood)\b`), "What is known now"},
	{regexp.MustCompile(`(?i)\b(disagree|disputed|debated|still debate|controversial|contested)\b`), "Which view holds"},
	{regexp.MustCompile(`(?i)\b(depends?|depending|varies|vary) (\w+ )?(on|by|with|from|between)\b`), "Which case applies"},
	{regexp.MustCompile(`(?i)\b(sparse|scarce|incomplete) |records? (is|are) (sparse|scarce)`), "What other records are there"},
	{regexp.MustCompile(`(?i)\b(remains? to be|open question|further research|more research)\b`), "What has been found since"},
}

// openQuestions asks on where the evidence stops: parts left open, sentences
// that hedge, names met and not followed.
func (lk *look) openQuestions(st *reason.State, picks []answer) []marchwarden.OpenQuestion {
	var out []marchwarden.OpenQuestion
	if len(lk.q.Parts) > 1 {
		for _, p := range lk.unanswered(picks) {
			if len(out) < maxOpen {
				out = append(out, marchwarden.OpenQuestion{Question: asked(lk.q.Parts[p].Label), Priority: marchwarden.High,
					Context: "a part of the question that no sentence of the evidence answers"})
			}
		}
	}
	out = append(out, lk.hedged(maxOpen-len(out))...)
	if len(out) == 0 && lk.q.Broad {
		searched := newQueries(st.Searches)
		for _, l := range lk.leads(trail(lk.q, st)) {
			if len(out) < 1 && !searched.asked(l.Name) {
				out = append(out, marchwarden.OpenQuestion{Question: fmt.Sprintf("How does %s bear on %q?", l.Name, lk.q.Text), Priority: marchwarden.Low,
					Context: fmt.Sprintf("%q was met in %s and not searched for", l.Name, path.Base(l.Source)), SourceLocator: l.Source})
			}
		}
	}
	return out
}

// asked makes a question of the label of a part.
func asked(label string) string {
	if subject, period, ok := strings.Cut(label, ": "); ok {
		return fmt.Sprintf("What happened in %s in the %s?", subject, period)
	}
	r, n := utf8.DecodeRuneInString(label)
	return string(unicode.ToUpper(r)) + label[n:] + "?"
}

// hedged finds the sentences that bear most on the question and leave something
// open.
func (lk *look) hedged(n int) []marchwarden.OpenQuestion {
	var out []marchwarden.OpenQuestion
	asked := map[string]bool{}
	for _, s := range lk.bearing() {
		if len(out) >= n {
			break
		}
		for _, h := range hedges {
			if !h.words.MatchString(s.text) || asked[question.Plain(s.text)] || thin(s.text) > 0 {
				continue
			}
			asked[question.Plain(s.text)] = true
			out = append(out, marchwarden.OpenQuestion{
				Question: fmt.Sprintf("%s: “%s”?", h.ask, clause(s.text)), Priority: marchwarden.Medium,
				Context:       fmt.Sprintf("“%s” leaves this open, and nothing read goes further", nameOf(lk.windows[s.at].src)),
				SourceLocator: lk.windows[s.at].src.Page.Locator,
			})
			break
		}
	}
	return out
}

// clause is the sentence up to its first colon or semicolon.
func clause(text string) string {
	c := flat(text)
	if i := strings.IndexAny(c, ":;"); i > 30 {
		c = c[:i]
	}
	return strings.TrimRight(c, ".!?")
}

var (
	scholarly = regexp.MustCompile(`(?i)\b(arxiv|doi:?\s*10\.|preprints?|research papers?|surveys? of|surveys? and|survey papers?|literature review|meta-analys[ie]s|peer-reviewed|published a paper|paper published|the paper of)\b`)
	address   = regexp.MustCompile(`https?://[^\s<>()\[\]"']+[^\s<>()\[\]"'.,;:!?]`)
	authority = regexp.MustCompile(`\b[Aa]ccording to (?:the |a |an )?([A-Z][\w&'-]*(?: (?:(?:of|for|and|the|on) )*[A-Z][\w&'-]*)*)`)
)

// bearing are the sentences of the windows that bear on the question.
func (lk *look) bearing() []unit {
	var out []unit
	for i := range lk.windows {
		if lk.share(lk.windows[i].held) >= bearing {
			out = append(out, lk.units(i)...)
		}
	}
	return out[:min(leadSentences, len(out))]
}

// discoveries are leads met in sentences that bear on the question.
func (lk *look) discoveries(st *reason.State) []marchwarden.DiscoveryEvent {
	var papers, sources []marchwarden.DiscoveryEvent
	seen := map[string]bool{}
	for _, s := range st.Evidence.Sources() {
		seen[s.Page.Locator] = true
	}
	for _, s := range lk.bearing() {
		locator := lk.windows[s.at].src.Page.Locator
		if m := scholarly.FindString(s.text); m != "" && len(papers) < maxEvents && !seen["paper "+locator] {
			seen["paper "+locator] = true
			papers = append(papers, marchwarden.DiscoveryEvent{
				Type: marchwarden.RelatedResearch, SuggestedResearcher: "arxiv", Query: lk.q.Words(),
				Reason:        fmt.Sprintf("%s points to scholarly work (%s): %s", path.Base(locator), strings.ToLower(m), clip(flat(s.text), 160)),
				SourceLocator: lk.windows[s.at].src.Page.Locator,
			})
		}
		for _, lead := range leads(s.text) {
			if len(sources) < maxEvents && !seen[lead] {
				seen[lead] = true
				sources = append(sources, marchwarden.DiscoveryEvent{
					Type: marchwarden.NewSource, Query: lead,
					Reason:        fmt.Sprintf("named in %s and not read: %s", path.Base(locator), clip(flat(s.text), 160)),
					SourceLocator: lk.windows[s.at].src.Page.Locator,
				})
			}
		}
	}
	for _, l := range lk.links(st, maxEvents-len(sources)) {
		if !seen[l.Query] {
			sources = append(sources, l)
		}
	}
	return append(papers, sources...)
}

// links are up to n addresses that the documents link to, that no document was
// read from and that show a word of the question.
func (lk *look) links(st *reason.State, n int) []marchwarden.DiscoveryEvent {
	var out []marchwarden.DiscoveryEvent
	for _, src := range st.Evidence.Sources() {
		for _, l := range src.Page.Links {
			if len(out) == n {
				return out
			}
			if !address.MatchString(l) || !slices.ContainsFunc(lexicon.Terms(pathMarks.Replace(l)), func(s string) bool { return lk.q.Has(s) }) {
				continue
			}
			out = append(out, marchwarden.DiscoveryEvent{
				Type: marchwarden.NewSource, Query: l, SourceLocator: src.Page.Locator,
				Reason: fmt.Sprintf("%s links to it and it was not read", path.Base(src.Page.Locator)),
			})
		}
	}
	return out
}

// leads are the addresses and the authorities that a sentence names.
func leads(text string) []string {
	out := address.FindAllString(text, -1)
	for _, m := range authority.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSpace(m[1]))
	}
	return out
}

// quarrelEvents reports each contradiction as a lead: a third source may settle it.
func quarrelEvents(quarrel []marchwarden.Contradiction) []marchwarden.DiscoveryEvent {
	var out []marchwarden.DiscoveryEvent
	for _, c := range quarrel[:min(len(quarrel), maxEvents)] {
		out = append(out, marchwarden.DiscoveryEvent{
			Type: marchwarden.ContradictionDetected, Query: c.Subject + " " + strings.TrimPrefix(c.Attribute, "number of "), Reason: c.Detail, SourceLocator: c.A.Locator,
		})
	}
	return out
}
