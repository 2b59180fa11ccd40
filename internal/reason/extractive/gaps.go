package extractive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Most of each kind that a draft reports.
const (
	maxOpen       = 3
	maxEvents     = 3
	leadSentences = 80  // of the windows that bear on the question, how many are looked through for leads
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
			Detail: fmt.Sprintf("%s found and none could be read within the token budget", lexicon.Counted(len(unread), "passage was", "passages were"))}}
		return d
	}
	read := lexicon.Counted(len(st.Evidence.Sources()), "document", "documents")
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
	d.Discoveries = lk.discoveries(st)
	return d
}

func unreadGap(st *reason.State, q *lexicon.Question, unread []window) marchwarden.Gap {
	var names []string
	for _, w := range unread {
		if name := cmp.Or(w.src.Page.Title, path.Base(w.src.Page.Locator)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return marchwarden.Gap{Topic: q.Topic, Category: marchwarden.BudgetExhausted,
		Detail: fmt.Sprintf("%s left unread within the token budget of %d: %s", lexicon.Counted(len(unread), "relevant passage was", "relevant passages were"),
			st.Limits.TokenBudget, listed(names, 4))}
}

// lacking are the words of the question, as written, that nothing read holds.
// Words of one name are given as the name. Strict leaves all but names and
// numbers out.
func (lk *look) lacking(strict bool) []string {
	var out []string
	for _, t := range lk.uncovered() {
		tm := lk.q.Terms[t]
		word := tm.Text
		for _, n := range lk.q.Names {
			if tm.Name && slices.Contains(lexicon.Terms(n), tm.Stem) {
				word = n
			}
		}
		if (!strict || tm.Name || tm.Number) && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// gaps says what the answer leaves out: names and numbers that nothing read holds, and
// what the budget left unread.
func (lk *look) gaps(st *reason.State, unread []window, match float64) []marchwarden.Gap {
	var out []marchwarden.Gap
	if len(unread) > 0 {
		out = append(out, unreadGap(st, lk.q, unread))
	}
	if lacking := lk.lacking(match >= goodMatch); len(lacking) > 0 {
		out = append(out, marchwarden.Gap{Topic: listed(lacking, 6), Category: marchwarden.SourceNotFound,
			Detail: fmt.Sprintf("asked about, but absent from the %s read", lexicon.Counted(len(st.Evidence.Sources()), "document", "documents"))})
	}
	return out
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

var (
	scholarly = regexp.MustCompile(`(?i)\b(arxiv|doi:?\s*10\.|preprints?|research papers?|surveys? of|surveys? and|survey papers?|literature review|meta-analys[ie]s|peer-reviewed|published a paper|paper published|the paper of)\b`)
	authority = regexp.MustCompile(`\b[Aa]ccording to (?:the |a |an )?([A-Z][\w&'-]*(?: (?:(?:of|for|and|the|on) )*[A-Z][\w&'-]*)*)`)
	address   = regexp.MustCompile(`https?://[^\s<>()\[\]"']+[^\s<>()\[\]"'.,;:!?]`)
)

func (lk *look) bearing() []unit {
	var out []unit
	for i := range lk.windows {
		if lk.share(lk.windows[i].held) >= bearing {
			out = append(out, lk.units(i)...)
		}
	}
	return out[:min(leadSentences, len(out))]
}

// discoveries are leads met in sentences that bear on the question: scholarly work, and
// addresses and authorities that were not read.
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
				Reason:        fmt.Sprintf("%s points to scholarly work (%s): %s", path.Base(locator), strings.ToLower(m), plaintext.Clip(flat(s.text), 160)),
				SourceLocator: locator,
			})
		}
		if lk.share(lk.holds(s.text)) < bearing {
			continue // an address beside it is any address
		}
		named := address.FindAllString(s.text, -1)
		for _, m := range authority.FindAllStringSubmatch(s.text, -1) {
			named = append(named, m[1])
		}
		for _, lead := range named {
			if len(sources) < maxEvents && !seen[lead] {
				seen[lead] = true
				sources = append(sources, marchwarden.DiscoveryEvent{
					Type: marchwarden.NewSource, Query: lead,
					Reason:        fmt.Sprintf("named in %s and not read: %s", path.Base(locator), plaintext.Clip(flat(s.text), 160)),
					SourceLocator: locator,
				})
			}
		}
	}
	return append(papers, sources...)
}
