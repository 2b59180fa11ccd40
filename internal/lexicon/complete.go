package lexicon

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This part completes a question of a conversation that leaves out what an earlier one
// named: "and in St George?", "what about 2023?", "when was he born?".

var (
	// opener are words that lead from one question to the next.
	opener = regexp.MustCompile(`(?i)^\s*(?:(?:and|or|but|so|then|ok|okay|also)\b[\s,:–-]*)*(?:(?:what|how)\s+about\b\s*)?`)
	// dummy is an "it" that stands for nothing: "is it safe to …".
	dummy = regexp.MustCompile(`(?i)\b(?:is|was|will|would|can|could|may|might|should)\s+it\s+(?:be\s+)?\w+\s+(?:to|that|if)\b|\bit\s+(?:is|was)\s+\w+\s+(?:to|that)\b`)

	places   = WordSet("places")
	persons  = WordSet("persons")
	pointing = WordSet("pointing")
)

// Complete is a question with what it leaves out put in from the question before it and
// its answer in a few words, or "". A question that stands alone stays as it is.
func Complete(asked, before, answer string) string {
	asked, before = strings.TrimSpace(asked), strings.TrimSpace(before)
	if before == "" || SameWords(asked) == SameWords(before) {
		return asked
	}
	rest := asked[len(opener.FindString(asked)):]
	opened := len(rest) < len(asked)
	clause := strings.TrimRight(rest, " ?!.")
	toks := Tokens(clause)
	switch {
	case len(toks) == 0:
		if opened {
			return before
		}
		return asked
	case fragment(toks) && (opened || strings.HasSuffix(asked, "?") && named(toks)):
		return swapped(before, clause, toks)
	case alone(clause, toks):
		return asked
	}
	q := ReadQuestion(before, "")
	if i, name := pronoun(toks), nameOf(answer); i >= 0 && name != "" && !strings.Contains(before, name) {
		word := strings.ToLower(toks[i].Text)
		if persons[word] || q.Kind != "who" && q.Kind != "whom" && q.Kind != "whose" {
			if word == "his" || word == "its" || word == "their" || word == "her" && i+1 < len(toks) && !toks[i+1].Stop {
				name += "'s"
			} else if word == "there" {
				name = "in " + name
			}
			return Begun(clause[:toks[i].Start]+name+clause[toks[i].End:]) + "?"
		}
	}
	subject := strings.Join(q.Names, " ")
	if subject == "" || q.Kind == AskDefine {
		subject = q.Words()
	}
	return Begun(subject) + ": " + clause + "?"
}

// fragment reports words that ask nothing by themselves.
func fragment(toks []Token) bool {
	return !yesOrNo[strings.ToLower(toks[0].Text)] && !slices.ContainsFunc(toks, func(t Token) bool { return questionWord[strings.ToLower(t.Text)] })
}

// named reports a name or a number, with or without a word of place before it.
func named(toks []Token) bool {
	if places[strings.ToLower(toks[0].Text)] {
		toks = toks[1:]
	}
	return len(toks) > 0 && !slices.ContainsFunc(toks, func(t Token) bool { return !t.Capital && !t.Number })
}

// alone reports a question that says itself what it is about.
func alone(clause string, toks []Token) bool {
	q := ReadQuestion(clause, "")
	stems, the := len(newPart(clause).Stems), false
	for i, t := range toks {
		word := strings.ToLower(t.Text)
		the = the || word == "the"
		if word == "there" && yesOrNo[strings.ToLower(WordAt(toks, i-1))] || word == "that" && stems > 2 {
			continue
		}
		if pointing[word] && len(q.Names) == 0 {
			return false
		}
	}
	switch {
	case refersBack(clause) && !dummy.MatchString(clause):
		return false
	case len(q.Names) > 0 || stems > 2 || slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Number }):
		return true
	case q.Kind == AskDefine:
		return stems > 0 && !the
	}
	return stems == 2 && !the
}

// pronoun is the first token that stands for what was named before, or -1.
func pronoun(toks []Token) int {
	for i, t := range toks {
		if word := strings.ToLower(t.Text); pronouns[word] || word == "there" && !yesOrNo[strings.ToLower(WordAt(toks, i-1))] {
			return i
		}
	}
	return -1
}

// nameOf is the name that a short answer gives, or "".
func nameOf(answer string) string {
	const most = 80
	answer = strings.TrimSpace(unaddressed(answer))
	if len(answer) > most {
		return ""
	}
	if names := Names(answer); len(names) > 0 {
		return names[0]
	}
	if toks := Tokens(answer); len(toks) == 1 && toks[0].Capital && !toks[0].Stop {
		return toks[0].Text
	}
	return ""
}

// swapped is a question with a fragment in the place of its like: a place for a place, a
// year for a year, a name for a name. Where there is none it comes at the end, or before.
func swapped(before, piece string, toks []Token) string {
	word := strings.ToLower(toks[0].Text)
	whole := strings.TrimRight(before, " ?!.")
	if places[word] && len(toks) > 1 {
		piece = word + piece[toks[0].End:]
		if start, end, ok := likePhrase(whole, word, toks[1]); ok {
			return whole[:start] + piece + whole[end:] + "?"
		}
		return whole + " " + piece + "?"
	}
	old := Tokens(whole)
	if len(toks) == 1 && toks[0].Number {
		for _, t := range slices.Backward(old) {
			if t.Number && len(t.Text) == len(word) {
				return whole[:t.Start] + piece + whole[t.End:] + "?"
			}
		}
		if toks[0].Year() > 0 {
			return whole + " in " + piece + "?"
		}
	}
	if names := ReadQuestion(before, "").Names; toks[0].Capital && len(names) > 0 {
		last := names[len(names)-1]
		if at := strings.LastIndex(whole, last); at >= 0 {
			return whole[:at] + piece + whole[at+len(last):] + "?"
		}
	}
	return Begun(piece) + ": " + whole + "?"
}

// likePhrase is the last phrase of a question that a phrase of this word and object can
// stand for: one of the same word, or else one that names something, too. A number
// stands for a number only.
func likePhrase(whole, word string, object Token) (start, end int, ok bool) {
	toks := Tokens(whole)
	same := false
	for i, t := range toks {
		w := strings.ToLower(t.Text)
		if !places[w] || i+1 == len(toks) || toks[i+1].Number != object.Number {
			continue
		}
		if is := w == word; is || !same && object.Capital && namedAfter(toks, i+1) {
			same = same || is
			stop := i + 1
			for stop+1 < len(toks) && !places[strings.ToLower(toks[stop+1].Text)] && strings.TrimSpace(whole[toks[stop].End:toks[stop+1].Start]) == "" {
				stop++
			}
			start, end, ok = t.Start, toks[stop].End, true
		}
	}
	return start, end, ok
}

// namedAfter reports that a name stands at i, after an article perhaps.
func namedAfter(toks []Token, i int) bool {
	if articles[strings.ToLower(toks[i].Text)] && i+1 < len(toks) {
		i++
	}
	return toks[i].Capital && !toks[i].Stop
}

// Begun is a text with a capital at its beginning.
func Begun(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}
