package extract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// readNotebook reads the cells of a Jupyter notebook in their order: text, code, and what the code printed. What is no notebook of version 4 is JSON.
func readNotebook(s source, maxBytes int64) (Document, error) {
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
	src := s.text()
	if err := json.Unmarshal([]byte(src), &book); err != nil || book.Cells == nil {
		return readJSON(src, s.lines, maxBytes)
	}
	doc := Document{MediaType: s.format.mediaType(), Extractor: "notebook/1"}
	var out strings.Builder
	for _, c := range book.Cells {
		if c.Kind != "code" {
			text := readMarkdown(string(c.Source), nil)
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
		if int64(out.Len()) > maxBytes {
			return Document{}, fmt.Errorf("%w: text over %d bytes", ErrTooLarge, maxBytes)
		}
	}
	doc.Text = out.String()
	return doc, nil
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
func readSubtitles(src string, lines *Lines) Document {
	doc := Document{MediaType: fmtSubtitles.mediaType(), Extractor: "subtitles/1", Links: linksInText(src)}
	var out strings.Builder
	at, begun, said, last := "", 0, false, ""
	lines.of(src)
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
			lines.mark(out.Len(), n+1)
			out.WriteString(at + " ")
		} else {
			out.WriteByte(' ')
			lines.mark(out.Len(), n+1)
		}
		out.WriteString(text)
	}
	doc.Text = out.String()
	return doc
}
