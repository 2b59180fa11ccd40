package folders

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// The metrics. A value of a row has the name of the metric that it is a part of.
const (
	good2            = "good2"        // a key stands in the first two sentences
	good1            = "good1"        // a key stands in the first sentence
	short            = "short"        // the short answer is right and short
	file             = "file"         // the document that answers is cited
	refused          = "refused"      // of questions without an answer
	overRefused      = "over_refused" // of questions with one
	auroc            = "auroc"        // confidence tells good answers from bad ones
	aurocAll         = "auroc_all"    // confidence tells good answers from all else, refusals too
	calibrationError = "ece"
	sureRight        = "right_at_.9" // of answers with a confidence of at least .9
	words            = "words"
)

// Values of rows that are no metric.
const (
	confidence = "confidence"
	right      = "right" // of what was answered
)

// maxShort is how many words a short answer may have.
const maxShort = 25

// sure is from where on a confidence promises that an answer is right.
const sure = 0.9

// reply is what is read of a result. The short answer may be missing.
type reply struct {
	Answer     string       `json:"answer"`
	Short      *shortAnswer `json:"short_answer"`
	Confidence float64      `json:"confidence"`
	Citations  []struct {
		Locator string `json:"locator"`
	} `json:"citations"`
}

type shortAnswer struct {
	Text string `json:"text"`
	Kind string `json:"kind"`
}

// unknown is the kind of a short answer that says that there is none.
const unknown = "unknown"

// refused reports whether the reply gives no answer.
func (r reply) refused() bool {
	return len(r.Citations) == 0 || r.Short != nil && r.Short.Kind == unknown
}

// token is an escaped character or a marker of an answer.
var token = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])|\\[(\\d{1,9})\\]")

// blank is what separates paragraphs.
var blank = regexp.MustCompile(`\n[ \t]*\n\s*`)

// said are the sentences of an answer, plain and in order: a marker ends one, and so does
// what ends one in prose.
func said(answer string) []string {
	var out []string
	for _, paragraph := range blank.Split(answer, -1) {
		var piece strings.Builder
		cited := false
		flush := func() {
			text := piece.String()
			for _, s := range lexicon.Sentences(text) {
				out = append(out, text[s.Start:s.End])
			}
			piece.Reset()
			cited = false
		}
		say := func(s string) {
			if cited && strings.TrimSpace(s) != "" {
				flush()
			}
			piece.WriteString(s)
		}
		at := 0
		for _, m := range token.FindAllStringSubmatchIndex(paragraph, -1) {
			say(paragraph[at:m[0]])
			if at = m[1]; m[2] >= 0 {
				say(paragraph[m[2]:m[3]])
			} else {
				cited = true
			}
		}
		say(paragraph[at:])
		flush()
	}
	return out
}

// opening are the first sentences of the answer itself. What the short answer above it
// says is measured apart.
func (r reply) opening(most int) string {
	list := said(r.Answer)
	return strings.Join(list[:min(most, len(list))], " ")
}

// length is how many words the answer has.
func (r reply) length() (n int) {
	for _, s := range said(r.Answer) {
		n += len(strings.Fields(s))
	}
	return n
}

// short reports whether the short answer is what was asked for.
func (r reply) short(q question) bool {
	switch {
	case r.Short == nil || r.refused():
		return false
	case q.Kind == kindYes || q.Kind == kindNo:
		return r.Short.Kind == q.Kind
	}
	return len(strings.Fields(r.Short.Text)) <= maxShort && holds(r.Short.Text, q.Short)
}

// holds reports whether a text says one of the keys; "a && b" is said where both are.
func holds(text string, keys []string) bool {
	text = fold(text)
	return slices.ContainsFunc(keys, func(key string) bool {
		for part := range strings.SplitSeq(key, "&&") {
			if !stands(text, fold(part)) {
				return false
			}
		}
		return true
	})
}

// stands reports whether a part stands in a text. A number is not part of a longer one:
// 45 does not stand in 450.
func stands(text, part string) bool {
	if part == "" {
		return false
	}
	digit := func(s string, at int) bool { return at >= 0 && at < len(s) && s[at] >= '0' && s[at] <= '9' }
	for at := 0; ; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(part)
		before := digit(part, 0) && digit(text, from-1)
		after := digit(part, len(part)-1) && digit(text, to)
		if !before && !after {
			return true
		}
		at = from + 1
	}
}

// plain are the plain forms of typographic characters.
var plain = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "′", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "″", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...",
)

// fold is a text without what does not matter when it is compared: case, the kind of
// white space, quotes and dashes, and characters without a shape.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, plain.Replace(s))
	return strings.Join(strings.Fields(s), " ")
}

// values are the scores of one reply. A refusal says nothing, so it is never good.
func (s *session) values(q question, r reply) map[string]float64 {
	v := map[string]float64{confidence: r.Confidence}
	no := r.refused()
	good := !no && q.answerable() && holds(r.opening(2), q.Keys)
	if q.answerable() {
		v[good1] = number(!no && holds(r.opening(1), q.Keys))
		v[good2] = number(good)
		v[short] = number(r.short(q))
		v[overRefused] = number(no)
		if names := s.named(q); len(names) > 0 {
			v[file] = number(r.cites(names))
		}
	} else {
		v[refused] = number(no)
	}
	if !no {
		v[right], v[words] = number(good), float64(r.length())
	}
	return v
}

// cites reports whether one of the documents is cited.
func (r reply) cites(names []string) bool {
	for _, c := range r.Citations {
		name, _, _ := strings.Cut(c.Locator, "#")
		if slices.Contains(names, path.Base(name)) {
			return true
		}
	}
	return false
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// group is some of the questions, whose metrics have a prefix.
type group struct {
	prefix string
	has    func(q question) bool
}

var groups = []group{
	{"", func(question) bool { return true }},
	{partOpen + ": ", func(q question) bool { return q.Part == partOpen }},
	{partHeld + ": ", func(q question) bool { return q.Part == partHeld }},
	{office + ": ", func(q question) bool { return q.Folder == office }},
	{freshwiki + ": ", func(q question) bool { return q.Folder == freshwiki }},
}

// Score makes the metrics of all questions, of each part and of each folder. Where one
// part was run alone there are none of all.
func (s *session) Score(rows []eval.Row) []eval.Metric {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b eval.Row) int { return cmp.Compare(a.ID, b.ID) })
	parts := map[string]bool{}
	for _, r := range rows {
		parts[s.questions[r.ID].Part] = true
	}
	var out []eval.Metric
	for _, g := range groups {
		if g.prefix == "" && len(parts) < 2 {
			continue
		}
		some := slices.DeleteFunc(slices.Clone(rows), func(r eval.Row) bool { return !g.has(s.questions[r.ID]) })
		for _, m := range score(some) {
			m.Name = g.prefix + m.Name
			out = append(out, m)
		}
	}
	return out
}

// score makes the metrics of one group.
func score(rows []eval.Row) []eval.Metric {
	return append([]eval.Metric{
		eval.Mean(good2, rows), eval.Mean(good1, rows), eval.Mean(short, rows), eval.Mean(file, rows),
		eval.Mean(refused, rows), eval.Mean(overRefused, rows), eval.Mean(words, rows),
	}, trusted(rows)...)
}

// trusted are the metrics of confidence. An answer to a question that has none is wrong.
func trusted(rows []eval.Row) []eval.Metric {
	var yes, no, rest, p []float64
	var ok []bool
	high := eval.Metric{Name: sureRight}
	for _, r := range rows {
		c := r.Values[confidence]
		was, answered := r.Values[right]
		if !answered {
			rest = append(rest, c)
			continue
		}
		p, ok = append(p, c), append(ok, was == 1)
		if was == 1 {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
		if c >= sure {
			high.Value += was
			high.N++
		}
	}
	high.Value /= float64(max(1, high.N))
	return []eval.Metric{
		area(auroc, yes, no), area(aurocAll, yes, slices.Concat(no, rest)),
		{Name: calibrationError, Value: metric.ECE(p, ok, 10), N: len(p)}, high,
	}
}

// area is an AUROC, which speaks only where there are rows of both kinds.
func area(name string, yes, no []float64) eval.Metric {
	m := eval.Metric{Name: name, Value: metric.AUROC(yes, no)}
	if len(yes) > 0 && len(no) > 0 {
		m.N = len(yes) + len(no)
	}
	return m
}
