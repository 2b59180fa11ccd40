package extract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// readNotebook reads the cells of a Jupyter notebook in their order: text, code, and what the code printed. What is no notebook of version 4 is JSON.
func readNotebook(s source, doc *Document) error {
	var book struct {
		Cells []struct {
			Kind    string `json:"cell_type"`
			Source  jsonText
			Count   json.Number `json:"execution_count"`
			Outputs []struct {
				Text   jsonText
				Data   map[string]json.RawMessage
				Ename  string
				Evalue string
			}
		}
	}
	if err := json.Unmarshal([]byte(s.text()), &book); err != nil || book.Cells == nil {
		doc.MediaType, doc.Extractor = jsonMedia, jsonExtractor
		return readJSON(s, doc)
	}
	var out strings.Builder
	for _, c := range book.Cells {
		if c.Kind != "code" {
			var text Document
			markdown(string(c.Source), nil, &text)
			doc.Title = cmp.Or(doc.Title, text.Title)
			doc.Links = append(doc.Links, text.Links...)
			out.WriteString(text.Text + "\n\n")
		} else {
			printed := ""
			for _, o := range c.Outputs {
				var plain jsonText
				_ = plain.UnmarshalJSON(o.Data["text/plain"]) // which is its error; what is no text prints nothing
				printed += string(o.Text+plain) + strings.Trim(o.Ename+": "+o.Evalue, ": ") + "\n"
			}
			for _, part := range []struct{ name, text string }{{"In", string(c.Source)}, {"Out", printed}} {
				if strings.TrimSpace(part.text) != "" {
					fmt.Fprintf(&out, "%s [%s]:\n%s\n\n", part.name, c.Count, strings.Trim(part.text, "\n"))
				}
			}
		}
	}
	doc.Text = out.String()
	return nil
}

// jsonText is a text, or the list of its lines.
type jsonText string

// UnmarshalJSON takes what is neither for no text.
func (t *jsonText) UnmarshalJSON(raw []byte) error {
	var lines []string
	var whole string
	if json.Unmarshal(raw, &lines) == nil {
		*t = jsonText(strings.Join(lines, ""))
	} else if json.Unmarshal(raw, &whole) == nil {
		*t = jsonText(whole)
	}
	return nil
}

var (
	cueTimes = regexp.MustCompile(`^\s*((?:\d+:)?\d\d:\d\d)[.,]\d+\s*-->\s*(?:\d+:)?\d\d:\d\d[.,]\d+`)
	cueMarks = regexp.MustCompile(`</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}`)
	cueVoice = regexp.MustCompile(`<v(?:\.[^\s<>]*)?\s+([^<>]+)>`)
)

// cueBytes is how long what is said may be before a new paragraph begins without the end of a sentence.
const cueBytes = 400

// readSubtitles puts what is said into paragraphs of whole sentences, each after the time at which it begins.
func readSubtitles(s source, doc *Document) error {
	src := s.text()
	doc.Links = linksInText(src)
	var out strings.Builder
	at, begun, said, last := "", 0, false, ""
	s.lines.of(src)
	for n, line := range strings.Split(withLineEnds(src), "\n") {
		if m := cueTimes.FindStringSubmatch(line); m != nil {
			ended := strings.ContainsAny(out.String()[max(0, out.Len()-1):], ".!?…\"”")
			if at, said = m[1], true; out.Len() > begun && (ended || out.Len()-begun > cueBytes) {
				out.WriteString("\n\n")
				begun = out.Len()
			}
			continue
		}
		text := html.UnescapeString(cueMarks.ReplaceAllString(cueVoice.ReplaceAllString(line, "$1: "), ""))
		if text = strings.Join(strings.Fields(text), " "); text == "" {
			said = said && at != "" && out.Len() == begun // the cue may yet begin
			continue
		}
		if !said || text == last { // a number, a note, a style; a line that stays while the next one comes
			continue
		}
		if last = text; out.Len() == begun {
			s.lines.mark(out.Len(), n+1)
			out.WriteString(at + " ")
		} else {
			out.WriteByte(' ')
			s.lines.mark(out.Len(), n+1)
		}
		out.WriteString(text)
	}
	doc.Text = out.String()
	return nil
}

// maxGroups is how deep the groups of RTF and TeX may lie in each other.
const maxGroups = 10_000

// rtfGroup is what a group of an RTF file sets and its end takes back.
type rtfGroup struct {
	aside, hidden bool    // its text is none of the document's; is not shown
	about         *string // what its text tells of the document
	wide          int     // how many characters repeat one that is given by its number
}

type rtfReader struct {
	rtfGroup
	outer   []rtfGroup
	doc     *Document
	out     []byte
	charset encoding.Encoding
	undone  []byte // characters that are not decoded yet
	high    rune   // the first half of a character in two
	skip    int    // characters that repeat the one before
}

// rtfTexts are control words that stand for text.
var rtfTexts = map[string]string{
	"par": "\n\n", "sect": "\n\n", "page": "\n\n", "line": "\n", "row": "\n", "nestrow": "\n", "cell": " | ", "nestcell": " | ", "tab": "\t", "footnote": " ", "emspace": " ", "enspace": " ",
	"emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
	"~": "\u00a0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "\n\n", "\r": "\n\n",
}

// rtfAside are groups that hold no text of the document.
var rtfAside = strings.Fields("fonttbl colortbl stylesheet pict nonshppict object header headerl headerr headerf footer footerl footerr footerf listtable listoverridetable " +
	"revtbl rsidtbl filetbl fldinst bkmkstart bkmkend annotation atnid atnauthor comment xe tc")

// readRTF reads the text of a Rich Text file that is shown.
func readRTF(s source, doc *Document) error {
	raw := bytes.TrimLeft(s.raw, "\t\n\r ")
	if !bytes.HasPrefix(raw, []byte(`{\rtf`)) {
		return fmt.Errorf("%w: not Rich Text", ErrDamaged)
	}
	r := rtfReader{charset: charmap.Windows1252, rtfGroup: rtfGroup{wide: 1}, doc: doc}
	for len(raw) > 0 {
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '{':
			r.write("")
			if r.outer = append(r.outer, r.rtfGroup); len(r.outer) > maxGroups {
				return fmt.Errorf("%w: more than %d groups in each other", ErrTooLarge, maxGroups)
			}
		case '}':
			r.write("")
			if n := len(r.outer); n > 0 {
				r.rtfGroup, r.outer, r.skip = r.outer[n-1], r.outer[:n-1], 0
			}
		case '\\':
			raw = r.control(raw)
		case '\r', '\n':
		default:
			r.char(c)
		}
	}
	r.write("")
	doc.Text = string(r.out)
	doc.Links = linksInText(doc.Text)
	return nil
}

// control reads what stands behind a backslash, and gives what stands behind that.
func (r *rtfReader) control(raw []byte) []byte {
	n := 0
	for n < len(raw) && (raw[n]|0x20 >= 'a' && raw[n]|0x20 <= 'z') {
		n++
	}
	if n == 0 {
		switch {
		case len(raw) >= 3 && raw[0] == '\'':
			if b, err := strconv.ParseUint(string(raw[1:3]), 16, 8); err == nil {
				r.char(byte(b))
			}
			return raw[3:]
		case len(raw) == 0:
			return nil
		}
		r.word(string(raw[:1]), 0, false)
		return raw[1:]
	}
	end := n
	if end+1 < len(raw) && raw[end] == '-' && raw[end+1] >= '0' && raw[end+1] <= '9' {
		end++
	}
	for end < len(raw) && raw[end] >= '0' && raw[end] <= '9' {
		end++
	}
	word := string(raw[:min(n, 32)])
	number, err := strconv.Atoi(string(raw[n:min(end, n+12)]))
	if raw = raw[end:]; len(raw) > 0 && raw[0] == ' ' {
		raw = raw[1:]
	}
	if word == "bin" { // bytes of a picture
		return raw[min(max(number, 0), len(raw)):]
	}
	r.word(word, number, err == nil)
	return raw
}

func (r *rtfReader) word(word string, number int, counted bool) {
	switch on := !counted || number != 0; word {
	case "u":
		r.unicode(rune(uint16(number)))
	case "uc":
		r.wide = min(max(number, 0), 16)
	case "ansicpg":
		name := map[int]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 10000: "macintosh", 65001: "utf-8"}[number]
		if enc, _ := charset.Lookup(cmp.Or(name, fmt.Sprintf("windows-%d", number))); enc != nil { // else it stays that of Windows
			r.charset = enc
		}
	case "v", "deleted":
		r.write("")
		r.hidden = on
	case "*":
		r.aside = true
	case "shptxt": // a box with text, in a group that others pass over
		r.aside = false
	case "info":
		r.about = new(string)
	case "title", "author":
		if r.about != nil {
			r.about = map[string]*string{"title": &r.doc.Title, "author": &r.doc.Author}[word]
		}
	default:
		if slices.Contains(rtfAside, word) {
			r.aside = true
		} else if text, ok := rtfTexts[word]; ok {
			if strings.HasSuffix(word, "row") {
				r.out = bytes.TrimSuffix(r.out, []byte(" | "))
			}
			r.write(text)
		}
	}
}

// unicode writes a character that is given by its number.
func (r *rtfReader) unicode(c rune) {
	r.write("")
	r.skip = 0
	switch high := r.high; {
	case high != 0:
		r.write(string(utf16.DecodeRune(high, c)))
		r.high = 0
	case utf16.IsSurrogate(c):
		r.high = c
	default:
		r.write(string(c))
	}
	r.skip = r.wide
}

// char takes a character in the character set of the file.
func (r *rtfReader) char(c byte) {
	switch {
	case r.skip > 0:
		r.skip--
	case c < 0x80 && len(r.undone) == 0:
		r.write(string(rune(c)))
	default:
		r.undone = append(r.undone, c)
	}
}

// write writes what is not decoded yet, and then a text.
func (r *rtfReader) write(text string) {
	if len(r.undone) > 0 {
		text = decodeWith(r.charset, r.undone) + text
		r.undone = r.undone[:0]
	}
	switch {
	case r.aside || r.hidden:
	case r.about != nil:
		if len(*r.about) < 1000 {
			*r.about += text
		}
	default:
		r.out = append(r.out, text...)
	}
}
