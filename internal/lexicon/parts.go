package lexicon

import (
	"regexp"
	"slices"
	"strings"
)

var (
	quoted  = regexp.MustCompile(`["“”]([^"“”]{2,80})["“”]`)
	compare = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:compare|contrast)\s+(.+?)\s+(?:and|with|to|versus|vs\.?)\s+(.+?)[.?!]*$`)
	differ  = regexp.MustCompile(`(?i)\bdifferences?\s+between\s+(.+?)\s+and\s+(.+?)[.?!]*$`)
	clauses = regexp.MustCompile(`(?i)[?;]\s*|,?\s+and\s+(?:also\s+)?(?:(?:in|at|for|by|to|of|on|from)\s+)?(what|who|when|where|why|how|which|whose|is|are|was|were|does|do|did|can|should|will)\b`)
)

// partsOf splits a question into what it asks. Each part carries the words it
// shares with the whole only where it has no subject of its own.
func partsOf(q Question, text string) []Part {
	for _, re := range []*regexp.Regexp{compare, differ} {
		if m := re.FindStringSubmatch(text); m != nil {
			if a, b := newPart(m[1]), newPart(m[2]); len(a.Stems) > 0 && len(b.Stems) > 0 {
				return []Part{a, b}
			}
		}
	}
	var ps []Part
	for _, c := range splitClauses(text) {
		p := newPart(c)
		if len(p.Stems) == 0 {
			continue
		}
		if len(ps) > 0 && (len(p.Stems) < 2 || refersBack(c)) { // "… and why does it fail?" asks about the first subject
			p = p.about(q, ps[0])
		}
		ps = append(ps, p)
	}
	if len(ps) == 0 {
		return []Part{newPart(text)}
	}
	return ps
}

// refersBack reports a pronoun that stands for what was named before, in a
// clause that names nothing itself.
func refersBack(clause string) bool {
	back := false
	for i, t := range Tokens(clause) {
		back = back || pronouns[strings.ToLower(t.Text)]
		if i > 0 && t.Capital && !t.Stop {
			return false
		}
	}
	return back
}

// about gives a part without a subject the names of the question, or else the
// words of the first part; a definition names its subject by all its words.
func (p Part) about(q Question, first Part) Part {
	subject := strings.Join(q.Names, " ")
	if subject == "" || kindOf(Tokens(first.Label)) == AskDefine {
		subject = first.Query
	}
	whole := newPart(subject + " " + p.Query)
	whole.Label, whole.Subject = p.Label, newPart(subject).Stems
	return whole
}

// Question is the part as a question that stands alone: one without a subject of its
// own names that of the first part.
func (p Part) Question() string {
	text := p.Label + "?"
	if len(p.Subject) > 0 {
		var subject []string
		for _, w := range strings.Fields(p.Query) {
			if slices.Contains(p.Subject, Stem(w)) {
				subject = append(subject, w)
			}
		}
		text = strings.Join(subject, " ") + ": " + text
	}
	return Begun(text)
}

func splitClauses(text string) []string {
	var out []string
	from := 0
	for _, m := range clauses.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, strings.TrimSpace(text[from:m[0]]))
		from = m[1]
		if m[2] >= 0 {
			from = m[2]
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

func newPart(s string) Part {
	p := Part{Label: strings.Trim(s, " .?!,;")}
	var words []string
	for _, t := range Tokens(s) {
		if t.Stop || questionWord[strings.ToLower(t.Text)] || slices.Contains(p.Stems, t.Stem) {
			continue
		}
		p.Stems = append(p.Stems, t.Stem)
		words = append(words, t.Text)
	}
	p.Query = strings.Join(words, " ")
	return p
}
