package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	texPiece = 4 << 10 // the longest argument or formula in bytes; what is longer is read as text
	texOpen  = 100     // how many of them may have no end before the rest is read as text
)

// texTexts are commands that stand for text.
var texTexts = map[string]string{
	"ldots": "…", "dots": "…", "textellipsis": "…", "S": "§", "LaTeX": "LaTeX", "TeX": "TeX", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å", "AA": "Å",
	"l": "ł", "L": "Ł", "i": "i", "j": "j", "copyright": "©", "pounds": "£", "euro": "€", "degree": "°", "textdegree": "°", "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^",
	"textendash": "–", "textemdash": "—", "quad": " ", "qquad": " ", "newline": "\n", "par": "\n\n", "item": "\n- ", "and": ", ", "hline": "", "today": "",
}

// texAround are commands whose argument is text, with what stands before and after it.
var texAround = map[string][2]string{
	"part": {"\n\n## ", "\n\n"}, "chapter": {"\n\n## ", "\n\n"}, "section": {"\n\n## ", "\n\n"}, "subsection": {"\n\n### ", "\n\n"}, "subsubsection": {"\n\n#### ", "\n\n"}, "paragraph": {"\n\n#### ", "\n\n"},
	"title": {"\n\n# ", "\n\n"}, "caption": {"\n\n", "\n\n"}, "footnote": {" (", ")"}, "enquote": {"“", "”"},
	"cite": {"[", "]"}, "citep": {"[", "]"}, "citet": {"[", "]"}, "parencite": {"[", "]"}, "textcite": {"[", "]"}, "autocite": {"[", "]"},
}

// texArguments says how many arguments of a command or an environment are no text.
var texArguments = map[string]int{
	"label": 1, "includegraphics": 1, "input": 1, "include": 1, "bibliography": 1, "bibliographystyle": 1, "usepackage": 1, "documentclass": 1, "vspace": 1, "hspace": 1, "pagestyle": 1,
	"thispagestyle": 1, "setlength": 2, "addtolength": 2, "setcounter": 2, "newcommand": 2, "renewcommand": 2, "providecommand": 2, "newtheorem": 2, "definecolor": 3, "hypersetup": 1, "index": 1,
	"textcolor": 1, "color": 1, "href": 1, "fontsize": 2, "multicolumn": 2, "multirow": 2, "cline": 1, "rule": 2, "phantom": 1, "bibitem": 1, "thanks": 1, "raisebox": 1, "resizebox": 2, "scalebox": 1,
	"tabular": 1, "tabularx": 2, "tabulary": 2, "longtable": 1, "array": 1, "minipage": 1, "thebibliography": 1, "multicols": 1, "wrapfigure": 2, "subfigure": 1,
}

var (
	texAccents = map[string]rune{"'": '\u0301', "`": '\u0300', "^": '\u0302', "\"": '\u0308', "~": '\u0303', "=": '\u0304', ".": '\u0307', "c": '\u0327', "v": '\u030c', "u": '\u0306', "H": '\u030b', "k": '\u0328', "r": '\u030a'}
	texAsIs    = strings.Fields("verbatim Verbatim lstlisting minted alltt math displaymath equation align gather multline eqnarray")
	texAside   = strings.Fields("comment filecontents tikzpicture picture")
	texTables  = strings.Fields("tabular tabularx tabulary longtable")
)

// texReader takes the text out of a TeX file. Formulas and listings stay as they are written.
type texReader struct {
	src    string
	at     int
	out    strings.Builder
	lines  *Lines
	after  []string // what stands behind each open group
	tables int      // that are open
	open   int      // pieces that had no end
}

func readTeX(s source, doc *Document) error {
	raw := s.text()
	src := withLineEnds(raw)
	s.lines.below(raw, src, 0)
	r := &texReader{src: src, lines: s.lines}
	doc.Links = linksInText(src)
	if head, _, ok := strings.Cut(src, `\begin{document}`); ok {
		for name, field := range map[string]*string{`\title{`: &doc.Title, `\author{`: &doc.Author, `\date{`: &doc.Published} {
			if at := strings.Index(head, name); at >= 0 {
				about := &texReader{src: head, at: at + len(name) - 1}
				about.argument()
				about.src, about.at = head[at+len(name)-1:about.at], 0
				*field = strings.ReplaceAll(about.read(), " ,", ",")
			}
		}
		r.at = len(head) + len(`\begin{document}`)
		if end := strings.LastIndex(src, `\end{document}`); end >= r.at {
			r.src = src[:end]
		}
	}
	doc.Text = r.read()
	return nil
}

func (r *texReader) read() string {
	r.lines.at(0, r.at)
	for r.at < len(r.src) {
		c := r.src[r.at]
		r.at++
		switch {
		case c == '\\':
			r.command()
		case c == '%':
			r.comment()
		case c == '{':
			r.group("")
		case c == '}':
			if n := len(r.after); n > 0 {
				r.out.WriteString(r.after[n-1])
				r.after = r.after[:n-1]
			}
		case c == '$':
			end := "$"
			if strings.HasPrefix(r.src[r.at:], "$") {
				end = "$$"
			}
			r.at--
			if !r.asIs(len(end), end) {
				r.copy(r.at + 1)
			}
		case c == '~':
			r.out.WriteByte(' ')
		case c == '&' && r.tables > 0:
			r.out.WriteString("| ")
			r.at = len(r.src) - len(strings.TrimLeft(r.src[r.at:], " \t"))
		default:
			r.at--
			r.plain()
		}
	}
	return r.out.String()
}

// plain copies a character, or several that are printed as one.
func (r *texReader) plain() {
	for _, p := range [...][2]string{{"---", "—"}, {"--", "–"}, {"``", "“"}, {"''", "”"}} {
		if strings.HasPrefix(r.src[r.at:], p[0]) {
			r.out.WriteString(p[1])
			r.at += len(p[0])
			return
		}
	}
	r.copy(r.at + 1)
}

// copy writes the source up to a place as it is.
func (r *texReader) copy(to int) {
	for ; r.at < to; r.at++ {
		if r.out.WriteByte(r.src[r.at]); r.src[r.at] == '\n' {
			r.lines.at(r.out.Len(), r.at+1)
		}
	}
}

// jump passes over the source up to a place.
func (r *texReader) jump(to int) {
	if strings.Contains(r.src[r.at:to], "\n") {
		r.out.WriteByte(' ')
		r.lines.at(r.out.Len(), to)
	}
	r.at = to
}

// comment passes over the rest of a line, and what indents the next.
func (r *texReader) comment() {
	end := strings.IndexByte(r.src[r.at:], '\n')
	if end < 0 {
		r.at = len(r.src)
		return
	}
	r.at += end + 1
	r.at = len(r.src) - len(strings.TrimLeft(r.src[r.at:], " \t"))
	r.lines.at(r.out.Len(), r.at)
}

func (r *texReader) group(after string) {
	if len(r.after) < maxGroups {
		r.after = append(r.after, after)
	}
}

// piece is where the next bytes that may be an argument end.
func (r *texReader) piece() string { return r.src[r.at:min(len(r.src), r.at+texPiece)] }

// asIs copies a formula, which begins here with some bytes, to its end.
func (r *texReader) asIs(begin int, end string) bool {
	if r.open > texOpen {
		return false
	}
	n := strings.Index(r.piece()[min(begin, len(r.piece())):], end)
	if n < 0 {
		r.open++
		return false
	}
	r.copy(r.at + begin + n + len(end))
	return true
}

// option passes over what stands in brackets here.
func (r *texReader) option() {
	if piece := r.piece(); strings.HasPrefix(piece, "[") && r.open <= texOpen {
		if n := strings.IndexByte(piece, ']'); n > 0 {
			r.jump(r.at + n + 1)
		} else {
			r.open++
		}
	}
}

// argument passes over what stands in braces here, and options before it.
func (r *texReader) argument() {
	r.option()
	piece, depth := r.piece(), 0
	if !strings.HasPrefix(piece, "{") || r.open > texOpen {
		return
	}
	for i := 0; i < len(piece); i++ {
		switch piece[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				r.jump(r.at + i + 1)
				return
			}
		}
	}
	r.open++
}

// command reads what stands behind a backslash.
func (r *texReader) command() {
	rest := r.src[r.at:min(len(r.src), r.at+64)]
	name := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return c < utf8.RuneSelf && unicode.IsLetter(c) }))]
	if name == "" {
		r.symbol(rest)
		return
	}
	r.at += len(name)
	r.at += len(r.piece()) - len(strings.TrimLeft(strings.TrimPrefix(r.piece(), "*"), " \t"))
	switch {
	case name == "begin" || name == "end":
		r.environment(name == "begin")
	case name == "verb" && r.at < len(r.src):
		if delimiter := r.src[r.at : r.at+1]; strings.Contains(r.piece()[1:], delimiter) {
			r.at++
			r.copy(r.at + strings.Index(r.piece(), delimiter))
			r.at++
		}
	case texAccents[name] != 0 && strings.HasPrefix(r.src[r.at:], "{"):
		r.accent(texAccents[name])
	default:
		r.out.WriteString(texTexts[name])
		for range texArguments[name] {
			r.argument()
		}
		if around, ok := texAround[name]; ok {
			if r.option(); strings.HasPrefix(r.src[r.at:], "{") {
				r.at++
				r.out.WriteString(around[0])
				r.group(around[1])
			}
		}
	}
}

// symbol reads a command that is no word.
func (r *texReader) symbol(rest string) {
	if rest == "" {
		return
	}
	end := map[byte]string{'(': `\)`, '[': `\]`}[rest[0]]
	switch c := rest[0]; {
	case end != "":
		if r.at--; !r.asIs(2, end) {
			r.at += 2
		}
	case c == '\n': // a space
		r.copy(r.at + 1)
	case texAccents[rest[:1]] != 0:
		r.at++
		r.accent(texAccents[rest[:1]])
	case c == '\\':
		r.at++
		r.option()
		r.out.WriteByte('\n')
		if strings.HasPrefix(r.src[r.at:], "\n") {
			r.at++
			r.lines.at(r.out.Len(), r.at)
		}
	case strings.IndexByte("%$&#_{}", c) >= 0:
		r.copy(r.at + 1)
	case c < utf8.RuneSelf:
		if r.at++; strings.IndexByte(" ,:;", c) >= 0 {
			r.out.WriteByte(' ')
		}
	}
}

// accent writes the letter that comes next with a mark.
func (r *texReader) accent(mark rune) {
	rest := r.src[r.at:min(len(r.src), r.at+16)]
	bare := strings.TrimPrefix(rest, "{")
	letter, size := utf8.DecodeRuneInString(strings.TrimPrefix(bare, `\`)) // i and j without their dots are commands
	if bare = bare[min(len(bare), size+len(bare)-len(strings.TrimPrefix(bare, `\`))):]; !unicode.IsLetter(letter) {
		return
	}
	if strings.HasPrefix(rest, "{") {
		bare = strings.TrimPrefix(bare, "}")
	}
	r.out.WriteString(norm.NFC.String(string([]rune{letter, mark})))
	r.at += len(rest) - len(bare)
}

// environment reads the name behind \begin or \end, and what belongs to it.
func (r *texReader) environment(begins bool) {
	name, _, ok := strings.Cut(strings.TrimPrefix(r.piece(), "{"), "}")
	if !ok {
		return
	}
	r.at += len(name) + 2
	name = strings.TrimSuffix(name, "*")
	isIn := func(list []string) bool { return slices.Contains(list, name) }
	if isIn(texTables) && begins {
		r.tables++
	} else if isIn(texTables) {
		r.tables = max(r.tables-1, 0)
	}
	r.out.WriteString("\n\n")
	if !begins {
		return
	}
	if isIn(texAsIs) || isIn(texAside) {
		end := strings.Index(r.src[r.at:], `\end{`+name)
		if end < 0 {
			end = len(r.src) - r.at
		}
		if end += r.at; isIn(texAsIs) {
			r.copy(end)
		} else {
			r.jump(end)
		}
		return
	}
	r.option()
	for range texArguments[name] {
		r.argument()
	}
	if name == "abstract" {
		r.out.WriteString("## Abstract\n\n")
	}
}
