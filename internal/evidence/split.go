package evidence

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// MaxPassageChars is the longest passage, in characters.
const MaxPassageChars = 480

// maxPassages bounds the passages of one document. Prose of 32 MiB has fewer; a
// page of millions of one-letter paragraphs would fill the memory.
const maxPassages = 500_000

// wholeItem is the longest item of a list or line of notes, in bytes, that is one
// sentence whatever full stops it has.
const wholeItem = 200

// lookEvery is after how many paragraphs the context is looked at.
const lookEvery = 256

// Split cuts a text into passages, in order. IDs and source numbers are left
// empty. A passage is whole sentences of one paragraph of at most MaxPassageChars
// characters; a sentence that is longer by itself is cut at word boundaries. The
// items of a list, with the line that leads to them, count as one paragraph, as do
// the rows of a table. A row, a short item and a short line of notes are one
// sentence each. Every byte that is not white space or a mark of quoted mail lies
// in exactly one passage, and in exactly one of its sentences; but a document that
// would have over 500,000 passages ends with these.
func Split(text string) []Passage {
	passages, _ := split(context.Background(), text, false) // fails with its context alone
	return passages
}

func split(ctx context.Context, text string, earlier bool) ([]Passage, error) {
	b := builder{text: text, earlier: earlier}
	explained := false // by this paragraph: the one before it is a term
	paragraphs := lexicon.Paragraphs(text)
	b.passages = make([]Passage, 0, min(len(paragraphs), maxPassages))
	for i, p := range paragraphs {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(b.passages) >= maxPassages {
			return b.passages[:maxPassages], nil
		}
		if i == 0 || !explained && !together(text, paragraphs[i-1], p) {
			b.flush()
			b.paragraphs++
		}
		if !earlier && indent(text, p) <= b.inset {
			b.term = ""
		}
		explained = false
		switch line := text[p.Start:p.End]; {
		case p.Kind == lexicon.Heading && (earlier || !strings.HasPrefix(line, "-- ")): // that signs what stands above it
			b.heading(p.Span)
			b.under(line)
		case !earlier && i+1 < len(paragraphs) && isTerm(text, p, paragraphs[i+1]):
			b.flush()
			b.term, b.inset, explained = strings.Join(strings.Fields(line), " "), indent(text, p), true
			b.sentence(marchwarden.Span(p.Span), false)
		case i+1 < len(paragraphs) && asks(text, p, paragraphs[i+1]):
			b.question(p.Span)
		case isRow(p.Kind, line):
			b.row(paragraphs, i)
		default:
			b.columns = nil
			b.message(line)
			if b.answers--; b.answers < 0 {
				b.asked = ""
			}
			ss := units(p)
			if lines := settings(text, p.Span); !earlier && len(lines) > 1 {
				ss = lines
			}
			if len(ss) > 1 && isQuestion(text, ss[0]) && !slices.ContainsFunc(ss[1:], func(s lexicon.Span) bool { return isQuestion(text, s) }) {
				b.question(ss[0])
				ss = ss[1:]
			}
			for _, s := range ss {
				b.sentence(marchwarden.Span(s), false)
			}
			b.bare = false
		}
	}
	b.flush()
	if !earlier {
		b.contents()
	}
	return b.passages, nil
}

// units are the sentences of a paragraph, or all of it where it is one.
func units(p lexicon.Paragraph) []lexicon.Span {
	if (p.Kind == lexicon.Item || p.Kind == lexicon.Line) && p.End-p.Start <= wholeItem {
		return []lexicon.Span{p.Span}
	}
	return p.Sentences
}

// together reports whether a paragraph belongs with the one before it: items and
// loose lines of one block, and a list with the sentence that leads to it.
func together(text string, before, p lexicon.Paragraph) bool {
	if p.Kind != lexicon.Item && p.Kind != lexicon.Line {
		return false
	}
	if before.Block == p.Block && before.Kind == p.Kind {
		return true
	}
	return p.Kind == lexicon.Item && before.Kind != lexicon.Heading && text[before.End-1] == ':'
}

// maxAnswers is how many paragraphs a question may head.
const maxAnswers = 4

// asks reports a question that stands alone before its answer, as in a list of
// frequent ones.
func asks(text string, p, next lexicon.Paragraph) bool {
	if strings.HasPrefix(text[p.Start:], "Q: ") && strings.HasPrefix(text[next.Start:], "A: ") {
		return p.End-p.Start <= MaxPassageChars
	}
	return len(p.Sentences) == 1 && isQuestion(text, p.Span) && next.Kind != lexicon.Heading && !isQuestion(text, next.Span) && next.Block <= p.Block+1
}

// isQuestion reports a question of the length of a heading.
func isQuestion(text string, s lexicon.Span) bool {
	return s.End-s.Start <= 160 && text[s.End-1] == '?' && text[s.Start] != '['
}

func (b *builder) heading(s lexicon.Span) {
	b.flush()
	b.sentence(marchwarden.Span(s), true)
	b.flush()
}

func (b *builder) question(s lexicon.Span) {
	b.heading(s)
	b.asked, b.answers = strings.TrimSpace(b.text[s.Start:s.End]), maxAnswers
}

// isRow reports a row of a table whose cells are told apart by bars.
func isRow(kind lexicon.Kind, line string) bool {
	return kind == lexicon.Item && !strings.Contains(line, "\n") && (line[0] == '|' || strings.Contains(line, " | "))
}

// Cells are the cells of a row of a table.
func Cells(row string) []string {
	cells := strings.Split(strings.Trim(row, "| "), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// builder gathers sentences into passages.
type builder struct {
	text       string
	heads      []string // the headings in force, outermost first
	levels     []int    // of those with a sign; deep for the others
	bare       bool     // the last heading has nothing under it yet
	asked      string   // the question in force
	answers    int      // paragraphs that it still heads
	mail       mail     // the message in force
	columns    []string // of the table in force
	term       string   // what is explained,
	inset      int      // and how far it is set in
	earlier    bool     // by earlier rules
	paragraphs int      // begun so far
	open       Passage
	chars      int // from the beginning of open to the end of its last sentence
	passages   []Passage
}

// deep is the level of a heading without a sign.
const deep = 7

// under puts what follows under a heading. One with a sign ("## Fines") or a line drawn
// under it, which is an outer one where it is double, says its level;
// of the others, one that stands right under another is a part of it, and any other
// takes the place of the last. The first heading of a text is its title and stays.
func (b *builder) under(line string) {
	line, drawn, _ := strings.Cut(line, "\n")
	heading := strings.TrimSpace(strings.Trim(line, "#"))
	level, keep := strings.IndexFunc(line, func(r rune) bool { return r != '#' }), len(b.heads)
	if drawn != "" {
		level = 1 + strings.IndexByte("=-", drawn[len(drawn)-1])
	}
	switch {
	case level > 0:
		for keep > 0 && b.levels[keep-1] >= level && !(keep == 1 && b.titled()) {
			keep--
		}
	case b.paragraphs == 1 || keep == 0:
		keep = 0
	case keep == 1 && b.titled() || b.levels[keep-1] < deep, b.bare && keep < 3:
	case b.bare:
		keep--
	default:
		for keep > b.level() && b.levels[keep-1] == deep {
			keep--
		}
	}
	if level <= 0 {
		level = deep
	}
	b.heads, b.levels = append(b.heads[:keep], heading), append(b.levels[:keep], level)
	b.bare, b.mail, b.asked, b.term = true, mail{}, "", ""
}

func (b *builder) titled() bool { return len(b.passages) > 0 && b.passages[0].IsHeading }

// level is where a heading goes that stands after other text: under the title, if
// there is one.
func (b *builder) level() int {
	if b.titled() {
		return 1
	}
	return 0
}

// row adds a row of a table. The first one names the columns where it has no
// figure and the next has as many cells; a line that is drawn is part of it.
func (b *builder) row(all []lexicon.Paragraph, i int) {
	p := all[i]
	line := b.text[p.Start:p.End]
	first := i == 0 || all[i-1].Block != p.Block || !isRow(all[i-1].Kind, b.text[all[i-1].Start:all[i-1].End])
	head := false
	if first {
		b.columns = nil
		if i+1 < len(all) && all[i+1].Block == p.Block {
			next := b.text[all[i+1].Start:all[i+1].End]
			if head = isRow(all[i+1].Kind, next) && b.names(Cells(line), Cells(next)); head {
				b.columns = Cells(line)
			}
		}
	}
	if head || drawn(line) {
		names := b.columns
		b.columns = nil
		b.heading(p.Span)
		b.columns = names
		return
	}
	b.sentence(marchwarden.Span(p.Span), false)
	b.bare = false
}

func drawn(row string) bool { return strings.Trim(row, "|-: +=") == "" }

// names reports whether the first row of a table names its columns: it has no figure, or none but years above other
// figures, or a line is drawn under it. The ends of rows may be missing.
func (b *builder) names(first, next []string) bool {
	figures := func(cells []string, some string) bool { return strings.ContainsAny(strings.Join(cells, ""), some) }
	const digits = "0123456789"
	if b.earlier {
		return len(first) == len(next) && !figures(first, digits)
	}
	named := func(c string) bool {
		return strings.ContainsFunc(c, unicode.IsLetter) && !strings.ContainsAny(c[:1], digits) || lexicon.Token{Text: c}.Year() > 0
	}
	return len(first) >= len(next) && (!figures(first, digits) || drawn(strings.Join(next, "|")) ||
		!slices.ContainsFunc(first, func(c string) bool { return !named(c) }) && slices.ContainsFunc(next, func(c string) bool { return !named(c) }))
}

// mail is what the head of a message says.
type mail struct{ from, date, subject string }

var mailLine = regexp.MustCompile(`^(From|Date|Sent|Subject): *(\S.*)$`)

// message notes a line of the head of a message. Its sender begins a new one.
func (b *builder) message(line string) {
	if line[0] != 'F' && line[0] != 'D' && line[0] != 'S' {
		return
	}
	m := mailLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	switch m[1] {
	case "From":
		b.flush()
		b.mail = mail{from: m[2]}
	case "Subject":
		b.mail.subject = m[2]
	default:
		b.mail.date = m[2]
	}
}

// path are the headings in force, and the message.
func (b *builder) path() string {
	parts := slices.Clone(b.heads)
	if b.mail.from != "" && b.mail.subject+b.mail.date != "" {
		from, _, _ := strings.Cut(b.mail.from, "<")
		parts = append(parts, strings.Trim(b.mail.subject+", from "+strings.TrimSpace(from)+", "+b.mail.date, ", "))
	}
	for _, inner := range []string{b.asked, b.term} {
		if inner != "" {
			parts = append(parts, inner)
		}
	}
	return strings.Join(parts, " › ")
}

// sentence adds a sentence to the open passage, or to a new one if it does not
// fit. One that fits into none is cut.
func (b *builder) sentence(s marchwarden.Span, heading bool) {
	for {
		head, cut := fit(b.text, s, MaxPassageChars)
		b.piece(head, heading)
		if !cut {
			return
		}
		s.Start = s.End - len(strings.TrimLeftFunc(b.text[head.End:s.End], unicode.IsSpace))
	}
}

func (b *builder) piece(s marchwarden.Span, heading bool) {
	grown := b.chars
	if n := len(b.open.Sentences); n > 0 {
		grown += utf8.RuneCountInString(b.text[b.open.Sentences[n-1].End:s.End])
		if grown > MaxPassageChars {
			b.flush()
		}
	}
	if len(b.open.Sentences) == 0 {
		b.open = Passage{Path: b.path(), IsHeading: heading, Columns: b.columns, Paragraph: b.paragraphs}
		if n := len(b.heads); n > 0 {
			b.open.Heading = b.heads[n-1]
		}
		b.open.Heading = cmp.Or(b.term, b.asked, b.open.Heading)
		grown = utf8.RuneCountInString(b.text[s.Start:s.End])
	}
	b.open.Sentences = append(b.open.Sentences, s)
	b.chars = grown
}

func (b *builder) flush() {
	n := len(b.open.Sentences)
	if n == 0 {
		return
	}
	p := b.open
	p.Index = len(b.passages) + 1
	p.Span = marchwarden.Span{Start: p.Sentences[0].Start, End: p.Sentences[n-1].End}
	p.Text = b.text[p.Span.Start:p.Span.End]
	b.passages = append(b.passages, p)
	b.open = Passage{}
	b.chars = 0
}
