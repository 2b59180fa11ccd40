package extractive

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// claims turns picks into sentences with their citations; hedged ones are said as
// partly supported.
func (lk *look) claims(picks []answer, hedged bool) []reason.Claim {
	var out []reason.Claim
	for k, a := range picks {
		c := reason.Claim{Text: lk.said(a), Passages: []evidence.ID{a.passage.ID}, Paragraph: k == 0, Support: marchwarden.Supported,
			Spans: []marchwarden.Span{lk.cited(a)}}
		if hedged {
			c.Support = marchwarden.Partial
		}
		for _, o := range lk.same(a) {
			c.Passages, c.Spans = append(c.Passages, o.passage.ID), append(c.Spans, lk.cited(answer{unit: o}))
		}
		out = append(out, c)
	}
	return out
}

// cited is what the citation of an answer shows: it and what stands around it in its
// paragraph, as far as an excerpt may go. Items that are said together are shown
// together, and what a line leads to with the line.
func (lk *look) cited(a answer) marchwarden.Span {
	src := lk.windows[a.at].src
	if led := lk.led(a.unit); led != a.span {
		return led
	}
	return evidence.Around(src.Text, src.Passages, a.span, marchwarden.MaxExcerptChars)
}

// same are the sentences of up to two other documents that say an answer word for word.
func (lk *look) same(a answer) []unit {
	if lk.led(a.unit) != a.span {
		return nil // "For example:" is said in many places
	}
	var out []unit
	seen := []*evidence.Source{lk.windows[a.at].src}
	plain := lexicon.Plain(a.text)
	for i := range lk.windows {
		if len(out) == 2 || slices.Contains(seen, lk.windows[i].src) {
			continue
		}
		for _, u := range lk.units(i) {
			if lexicon.Plain(u.text) == plain {
				out, seen = append(out, u), append(seen, lk.windows[i].src)
				break
			}
		}
	}
	return out
}

// said is an answer as it is said: a sentence as it stands; a row with the names of
// its columns; what does not say by itself what it is about with its heading before it.
func (lk *look) said(a answer) string {
	w := &lk.windows[a.at]
	text := flat(lk.telling(a))
	if a.passage.Columns != nil {
		text = lk.rowText(w, a)
	}
	if items := lk.items(a); items != "" {
		text = items
	}
	if led := lk.led(a.unit); led != a.span {
		text = flat(w.src.Text[led.Start:led.End])
	}
	heading := strings.TrimRight(flat(a.passage.Heading), ".:")
	if told, _, ok := lk.above(a); ok {
		return told + ": " + text
	}
	switch {
	case !lk.earlier && strings.HasPrefix(heading, "-") && !strings.Contains(text, heading): // an option says what it does
	case heading == "", len(heading) > 80, heading == a.passage.Path, strings.Contains(strings.ToLower(text), strings.ToLower(heading)):
		return text // without a heading, under the title alone, or with its words
	case endsSentence(text) && a.passage.Columns == nil && lk.subject(text), !lk.subject(heading):
		return text
	case strings.HasSuffix(heading, "?"):
		return heading + " " + text
	}
	return heading + ": " + text
}

// led is a sentence with what it leads to: what stands below a line that ends with a colon, and code
// where a way to do something is asked for. A row leads to nothing.
func (lk *look) led(u unit) marchwarden.Span {
	if lk.earlier || u.passage.Columns != nil {
		return u.span
	}
	return lk.windows[u.at].src.Lead(u.passage, u.span, lk.q.Kind == lexicon.AskHowTo, marchwarden.MaxExcerptChars)
}

// shown is the next sentence below an answer that leads to something, such as an example of what it
// says, if the answer does not do so itself.
func (lk *look) shown(a answer) (answer, bool) {
	if lk.led(a.unit) != a.span {
		return answer{}, false
	}
	for _, u := range lk.units(a.at) {
		if u.span.Start >= a.span.End && lk.led(u) != u.span {
			return answer{unit: u}, true
		}
	}
	return answer{}, false
}

// telling is an answer without what else its line says: of three sentences and more,
// the one with the words that answer.
func (lk *look) telling(a answer) string {
	parts := lexicon.Sentences(a.text)
	if len(parts) < 3 || lk.q.Broad {
		return a.text
	}
	for _, p := range parts {
		if a.words.Start >= a.span.Start+p.Start && a.words.End <= a.span.Start+p.End && a.words.End > a.words.Start {
			return a.text[p.Start:p.End]
		}
	}
	return a.text
}

// above is the innermost heading above an answer that has what is asked for, a date or the number of a version, and
// where that stands in the document, if the answer does not say it.
func (lk *look) above(a answer) (heading string, at marchwarden.Span, ok bool) {
	find := func(text string) (lexicon.Span, bool) {
		_, sp, ok := lexicon.FirstDate(text)
		return sp, ok
	}
	switch {
	case !lk.earlier && asksVersion.MatchString(lk.q.Text):
		find = func(text string) (sp lexicon.Span, ok bool) {
			if m := version.FindStringIndex(text); m != nil {
				sp, ok = lexicon.Span{Start: m[0], End: m[1]}, true
			}
			return sp, ok
		}
	case lk.q.Kind != lexicon.AskWhen:
		return "", at, false
	}
	if _, says := find(a.text); says {
		return "", at, false
	}
	before := lk.windows[a.at].src.Text[:a.span.Start]
	for _, h := range slices.Backward(strings.Split(a.passage.Path, " › ")) {
		sp, has := find(h)
		if from := strings.LastIndex(before, h); has && from >= 0 {
			return flat(h), marchwarden.Span{Start: from + sp.Start, End: from + sp.End}, true
		}
	}
	return "", at, false
}

var (
	asksVersion = regexp.MustCompile(`(?i)\b(which|what)( \S+)? (version|release)s?\b`)
	version     = regexp.MustCompile(`\bv?\d+(\.\d+)+[\w.-]*`)
)

// subject reports that a sentence names something of the question, or begins like one
// that says itself what it is about.
func (lk *look) subject(text string) bool {
	held := lk.holds(text)
	return len(held) == 0 || slices.Max(held) > 0
}

// rowText is a row of a table: all of it, or where it is long the first cell and the
// one that answers.
func (lk *look) rowText(w *window, a answer) string {
	from, to, ok := w.At(a.span)
	if !ok {
		return flat(a.text)
	}
	// The name of the first column stands before what is the document's.
	if i := strings.LastIndexAny(w.Text[:from], ".\n"); i >= 0 {
		from = i + 1
	} else {
		from = 0
	}
	row := strings.TrimSpace(w.Text[from:to])
	if utf8.RuneCountInString(row) <= longRow || a.words.End == 0 {
		return row
	}
	start, _, _ := w.At(a.words)
	var cells []string
	at := from
	for i, cell := range strings.SplitAfter(w.Text[from:to], "; ") {
		if i == 0 || start >= at && start < at+len(cell) {
			cells = append(cells, strings.Trim(cell, "; \n"))
		}
		at += len(cell)
	}
	return strings.Join(cells, "; ")
}

// items are the items of the list that an answer is one of, where several are asked
// for: said together, after the line that leads to them.
func (lk *look) items(a answer) string {
	if lk.q.Kind != lexicon.AskList || a.passage.Columns != nil || len(a.passage.Sentences) < 2 || !isItem(a.text) {
		return ""
	}
	src := lk.windows[a.at].src
	var out []string
	for _, sp := range a.passage.Sentences {
		out = append(out, strings.TrimRight(flat(src.Text[sp.Start:sp.End]), ";,"))
	}
	if strings.HasSuffix(out[0], ":") {
		return out[0] + " " + strings.Join(out[1:], "; ")
	}
	return strings.Join(out, "; ")
}

// isItem reports an item of a list by its mark.
func isItem(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("-*+•◦▪‣–", r) && n < len(text) && text[n] == ' ' || unicode.IsDigit(r) && strings.IndexAny(text, ".)") > 0 && strings.IndexAny(text, ".)") < 4
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, "\"'”’)]*_ ")
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && strings.ContainsRune(".!?…。", r)
}

// flat is a sentence on one line without the bullet of a list and the marks of quoted
// mail.
func flat(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "\n>", "\n")), " ")
	for _, b := range []string{"- ", "* ", "+ ", "• ", "– "} {
		s = strings.TrimPrefix(s, b)
	}
	return strings.TrimSpace(s)
}

// short is the answer in a few words: those that the reader points at, or yes or no.
// A question for a reason, a way or an overview has none but its sentence.
func (lk *look) short(ctx context.Context, st *reason.State, a answer) *reason.Short {
	s := &reason.Short{Passage: a.passage.ID, Span: a.words, Kind: marchwarden.ShortSpan}
	if lk.q.Kind == lexicon.AskYesNo {
		return lk.decide(ctx, st, a, s)
	}
	words := lk.windows[a.at].src.Text[a.words.Start:a.words.End]
	if _, at, ok := lk.above(a); ok && (lk.q.Kind != lexicon.AskWhen || !strings.ContainsFunc(words, unicode.IsLetter) || !lk.earlier && lk.told(a)) {
		s.Span = at // the reader saw no time in the sentence
	}
	if s.Span.End <= s.Span.Start || lk.q.Broad || lk.led(a.unit) != a.span {
		return nil
	}
	return s
}

// decide reads a yes-or-no question against the sentence that answers it: no, if the
// sentence denies, and nothing where the reader surely says otherwise. The reader by itself
// is wrong more often, and so are the words.
func (lk *look) decide(ctx context.Context, st *reason.State, a answer, s *reason.Short) *reason.Short {
	if st.Reader == nil {
		return nil
	}
	w := &lk.windows[a.at]
	relations, err := st.Reader.Relate(ctx, []reader.Pair{{Evidence: lk.said(a), Claim: lk.q.Text}, {Evidence: w.Path + ". " + w.Text, Claim: lk.q.Text}})
	if err != nil {
		return nil
	}
	lead := relations[0].Entailed + relations[1].Entailed - relations[0].Contradicted - relations[1].Contradicted
	s.Span = a.span
	switch denies := lexicon.Negated(lk.said(a)) != lexicon.Negated(lk.q.Text); {
	case !denies && lead > -overruled:
		s.Kind = marchwarden.ShortYes
	case denies && lead < overruled:
		s.Kind = marchwarden.ShortNo
	default:
		return nil
	}
	return s
}
