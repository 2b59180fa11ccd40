package extractive

import (
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
	goodMatch     = 0.7 // Match from which missing words are taken for said otherwise
	quarrels      = 2   // contradictions that are quoted in the answer
)

// refuse makes the draft of a question that nothing read answers, or for which
// there was no room to read at all.
func refuse(st *reason.State, q *question.Question, r *reading, unread []evidence.Scored, match float64) reason.Draft {
	if len(r.sents) == 0 && len(unread) > 0 {
		return reason.Draft{
			Refusal: fmt.Sprintf("The token budget of %d left no room to read what was found for this question.", st.Limits.TokenBudget),
			Gaps: []marchwarden.Gap{{Topic: q.Topic, Category: marchwarden.BudgetExhausted,
				Detail: fmt.Sprintf("%s found and none could be read within the token budget", plural(len(unread), "passage was", "passages were"))}},
		}
	}
	lacking := r.lacking(false)
	d := reason.Draft{Match: match, Refusal: refusal(st, lacking)}
	detail := "no stored document speaks to the question"
	if n := len(st.Evidence.Sources()); n > 0 {
		detail = fmt.Sprintf("%s read and none answers the question", plural(n, "document was", "documents were"))
	}
	if len(lacking) > 0 {
		detail += "; absent from what was read: " + listed(lacking, 6)
	}
	d.Gaps = append(d.Gaps, marchwarden.Gap{Topic: q.Topic, Category: marchwarden.SourceNotFound, Detail: detail})
	if len(unread) > 0 {
		d.Gaps = append(d.Gaps, unreadGap(st, q, unread))
	}
	return d
}

func unreadGap(st *reason.State, q *question.Question, unread []evidence.Scored) marchwarden.Gap {
	return marchwarden.Gap{Topic: q.Topic, Category: marchwarden.BudgetExhausted,
		Detail: fmt.Sprintf("%s left unread within the token budget of %d: %s", plural(len(unread), "relevant passage was", "relevant passages were"),
			st.Limits.TokenBudget, listed(titles(st.Evidence, unread), 4))}
}

func refusal(st *reason.State, lacking []string) string {
	searched := make([]string, 0, len(st.Searches))
	for _, s := range st.Searches {
		searched = append(searched, fmt.Sprintf("%q", s.Query))
	}
	out := "Nothing in the sources answers this question"
	if len(lacking) > 0 {
		out += ": they say nothing of " + listed(lacking, 4)
	}
	if len(searched) > 0 {
		out += fmt.Sprintf(" (searched for %s)", listed(searched, 4))
	}
	return out + "."
}

// lacking are the words of the question, as written, that nothing read holds.
// Words of one name are given as the name. Strict leaves all but names and
// numbers out.
func (r *reading) lacking(strict bool) []string {
	held := r.anywhere()
	var out []string
	for t, tm := range r.q.Terms {
		if held[t] > 0 || question.Light(tm.Stem) || question.Vague(tm.Stem) || strict && !tm.Name && !tm.Number {
			continue
		}
		word := tm.Text
		for _, n := range r.q.Names {
			if tm.Name && strings.Contains(n, tm.Text) {
				word = n
			}
		}
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// gaps says what the answer leaves out: parts without a sentence, words that
// nothing read holds, and what the budget left unread. Where the evidence answers
// well, a word that it lacks was said in another one; a name or a number was not.
func (r *reading) gaps(st *reason.State, picks []pick, unread []evidence.Scored, match float64) []marchwarden.Gap {
	var out []marchwarden.Gap
	short := len(unread) > 0
	if len(r.q.Parts) > 1 {
		for _, p := range r.unanswered(picks) {
			out = append(out, partGap(r.q.Parts[p], short, st))
		}
	}
	if short {
		out = append(out, unreadGap(st, r.q, unread))
	}
	if lacking := r.lacking(match >= goodMatch); len(lacking) > 0 {
		out = append(out, marchwarden.Gap{Topic: listed(lacking, 6), Category: marchwarden.SourceNotFound,
			Detail: fmt.Sprintf("asked about, but absent from the %s read", plural(len(st.Evidence.Sources()), "document", "documents"))})
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

// titles names the documents of passages, each once.
func titles(set *evidence.Set, ps []evidence.Scored) []string {
	var out []string
	for _, p := range ps {
		src, _, ok := set.Passage(p.ID)
		if !ok {
			continue
		}
		name := nameOf(src)
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func nameOf(src *evidence.Source) string {
	if src.Page.Title != "" {
		return src.Page.Title
	}
	return path.Base(src.Page.Locator)
}

// quoteQuarrels quotes both sides of the first contradictions, where the answer
// has not said them already.
func quoteQuarrels(quarrel []marchwarden.Contradiction, set *evidence.Set, said map[string]bool) []reason.Claim {
	var out []reason.Claim
	for _, c := range quarrel[:min(len(quarrel), quarrels)] {
		for _, side := range []marchwarden.Side{c.A, c.B} {
			if said[question.Plain(side.RawExcerpt)] {
				continue
			}
			src, p, span, ok := findSentence(set, side)
			if !ok {
				continue
			}
			said[question.Plain(side.RawExcerpt)] = true
			out = append(out, reason.Claim{
				Text: flat(side.RawExcerpt), Passages: []evidence.ID{p.ID},
				Spans:     []marchwarden.Span{around(src, span)},
				Paragraph: len(out) == 0, Support: marchwarden.Supported,
			})
		}
	}
	return out
}

func findSentence(set *evidence.Set, side marchwarden.Side) (*evidence.Source, evidence.Passage, marchwarden.Span, bool) {
	for _, src := range set.Sources() {
		if src.Page.Locator != side.Locator {
			continue
		}
		for _, p := range src.Passages {
			for _, sp := range p.Sentences {
				if src.Text[sp.Start:sp.End] == side.RawExcerpt {
					return src, p, sp, true
				}
			}
		}
	}
	return nil, evidence.Passage{}, marchwarden.Span{}, false
}

// quarrelsOf finds contradictions among what was read that bear on the question.
func (r *reading) quarrelsOf(set *evidence.Set, ranked []evidence.Scored) []marchwarden.Contradiction {
	among := make([]evidence.ID, len(ranked))
	for i, p := range ranked {
		among[i] = p.ID
	}
	return verify.Contradictions(r.q.Text, set, among)
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
func (r *reading) openQuestions(st *reason.State, picks []pick) []marchwarden.OpenQuestion {
	var out []marchwarden.OpenQuestion
	if len(r.q.Parts) > 1 {
		for _, p := range r.unanswered(picks) {
			if len(out) < maxOpen {
				out = append(out, marchwarden.OpenQuestion{Question: asked(r.q.Parts[p].Label), Priority: marchwarden.High,
					Context: "a part of the question that no sentence of the evidence answers"})
			}
		}
	}
	out = append(out, r.hedged(maxOpen-len(out))...)
	if len(out) == 0 && r.q.Broad {
		searched := newQueries(st.Searches)
		for _, l := range r.leads(trail(r.q, st)) {
			if len(out) < 1 && !searched.asked(l.Name) {
				out = append(out, marchwarden.OpenQuestion{Question: fmt.Sprintf("How does %s bear on %q?", l.Name, r.q.Text), Priority: marchwarden.Low,
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
func (r *reading) hedged(n int) []marchwarden.OpenQuestion {
	var out []marchwarden.OpenQuestion
	asked := map[string]bool{}
	for _, i := range r.top(leadSentences) {
		s := &r.sents[i]
		if len(out) >= n || s.feat[featNear] < bearing {
			break
		}
		for _, h := range hedges {
			if !h.words.MatchString(s.text) || asked[question.Plain(s.text)] || s.feat[featThin] > 0 {
				continue
			}
			asked[question.Plain(s.text)] = true
			out = append(out, marchwarden.OpenQuestion{
				Question: fmt.Sprintf("%s: “%s”?", h.ask, clause(s)), Priority: marchwarden.Medium,
				Context:       fmt.Sprintf("“%s” leaves this open, and nothing read goes further", nameOf(s.source)),
				SourceLocator: s.source.Page.Locator,
			})
			break
		}
	}
	return out
}

// clause is the sentence up to its first colon or semicolon.
func clause(s *sentence) string {
	c := flat(s.text)
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

// discoveries are leads met in sentences that bear on the question.
func (r *reading) discoveries(st *reason.State) []marchwarden.DiscoveryEvent {
	var papers, sources []marchwarden.DiscoveryEvent
	seen := map[string]bool{}
	for _, s := range st.Evidence.Sources() {
		seen[s.Page.Locator] = true
	}
	for _, i := range r.top(leadSentences) {
		s := &r.sents[i]
		if s.feat[featNear] < bearing {
			break
		}
		if m := scholarly.FindString(s.text); m != "" && len(papers) < maxEvents && !seen["paper "+s.source.Page.Locator] {
			seen["paper "+s.source.Page.Locator] = true
			papers = append(papers, marchwarden.DiscoveryEvent{
				Type: marchwarden.RelatedResearch, SuggestedResearcher: "arxiv", Query: r.q.Words(),
				Reason:        fmt.Sprintf("%s points to scholarly work (%s): %s", path.Base(s.source.Page.Locator), strings.ToLower(m), clip(flat(s.text), 160)),
				SourceLocator: s.source.Page.Locator,
			})
		}
		for _, lead := range leads(s.text) {
			if len(sources) < maxEvents && !seen[lead] {
				seen[lead] = true
				sources = append(sources, marchwarden.DiscoveryEvent{
					Type: marchwarden.NewSource, Query: lead,
					Reason:        fmt.Sprintf("named in %s and not read: %s", path.Base(s.source.Page.Locator), clip(flat(s.text), 160)),
					SourceLocator: s.source.Page.Locator,
				})
			}
		}
	}
	for _, l := range r.links(st, maxEvents-len(sources)) {
		if !seen[l.Query] {
			sources = append(sources, l)
		}
	}
	return append(papers, sources...)
}

// links are up to n addresses that the documents link to, that no document was
// read from and that show a word of the question.
func (r *reading) links(st *reason.State, n int) []marchwarden.DiscoveryEvent {
	var out []marchwarden.DiscoveryEvent
	for _, src := range st.Evidence.Sources() {
		for _, l := range src.Page.Links {
			if len(out) == n {
				return out
			}
			if !address.MatchString(l) || !slices.ContainsFunc(lexicon.Terms(pathMarks.Replace(l)), func(s string) bool { return r.q.Has(s) }) {
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
