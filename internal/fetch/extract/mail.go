package extract

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// The bounds of a message.
const (
	maxMailHead  = 1 << 20
	maxMailDepth = 10
	maxMailParts = 1000
)

// mboxLine begins a message of a mailbox, after a blank line.
var mboxLine = regexp.MustCompile(`(?:^|\n\r?\n)From \S+ +\w{3} \w{3} +\d{1,2} \d\d:\d\d[^\n]*\n`)

// readMail reads a message, or those of a mailbox one after the other: who wrote when to whom about what, then the text. Attachments are named. What of a mailbox cannot be
// read is said where it would stand.
func readMail(s source, doc *Document) error {
	raw := bytes.TrimLeft(bytes.TrimPrefix(s.raw, []byte("\xef\xbb\xbf")), "\r\n")
	ends := append(mboxLine.FindAllIndex(raw, -1), []int{len(raw), len(raw)})
	w := &mailWriter{source: s, doc: doc}
	if ends[0][0] > 0 { // no line of a mailbox before the first message
		ends = append([][]int{{0, 0}}, ends...)
	}
	var failed error
	read := 0
	for i := range ends[:len(ends)-1] {
		message := raw[ends[i][1]:ends[i+1][0]]
		if s.format == fmtMail {
			message = raw[ends[i][1]:] // whatever its text looks like
		} else {
			message = bytes.ReplaceAll(message, []byte("\n>From "), []byte("\nFrom "))
		}
		err := w.message(message, 0)
		if long := w.tooLong(w.out.Len()); long != nil {
			return long
		}
		if err == nil {
			read++
		} else {
			failed = cmp.Or(failed, err)
			fmt.Fprintf(&w.out, "\n\n[A message that cannot be read: %v]\n\n", err)
		}
		if s.format == fmtMail {
			break
		}
	}
	if read == 0 {
		return cmp.Or(failed, fmt.Errorf("%w: no message", ErrDamaged))
	}
	if s.format == fmtMbox {
		doc.Title, doc.Author, doc.Published = "", "", ""
	}
	doc.Text = w.out.String()
	doc.Links = append(doc.Links, linksInText(doc.Text)...)
	return nil
}

type mailWriter struct {
	source
	out      strings.Builder
	doc      *Document
	parts    int
	attached []string
}

// message writes the head and the text of a message.
func (w *mailWriter) message(raw []byte, depth int) error {
	raw = slices.Concat(bytes.TrimLeft(raw, "\r\n"), []byte("\n\n")) // a head alone ends, too
	if head := raw[:min(len(raw), maxMailHead)]; !bytes.Contains(head, []byte("\n\n")) && !bytes.Contains(head, []byte("\n\r\n")) {
		return fmt.Errorf("%w: a head of more than %d bytes", ErrTooLarge, maxMailHead)
	}
	if depth == 0 {
		w.parts = 0
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%w: %s", ErrDamaged, oneLine(err.Error(), 100))
	}
	if len(m.Header) == 0 {
		return fmt.Errorf("%w: a message without a head", ErrDamaged)
	}
	subject, from := mailWords(m.Header.Get("Subject")), mailWords(m.Header.Get("From"))
	if w.out.Len() == 0 {
		name, _, _ := strings.Cut(from, "<")
		w.doc.Title, w.doc.Author = subject, strings.Trim(cmp.Or(strings.TrimSpace(name), from), `"<> `)
		if at, err := mail.ParseDate(m.Header.Get("Date")); err == nil {
			w.doc.Published = at.Format(time.DateOnly)
		}
	}
	head := "\n\n"
	for _, name := range []string{"From", "To", "Cc", "Date", "Subject"} {
		if value := mailWords(m.Header.Get(name)); value != "" {
			head += name + ": " + value + "\n"
		}
	}
	outer := w.attached
	w.attached = nil
	text, err := w.part(mailPart{m.Header.Get, m.Body}, depth)
	if len(w.attached) > 0 {
		head += "Attachments, not read: " + strings.Join(w.attached, ", ") + "\n"
	}
	w.attached = outer
	w.out.WriteString(head + "\n" + text + "\n\n")
	return err
}

// mailPart is a message or a part of one.
type mailPart struct {
	header func(name string) string
	body   io.Reader
}

// part is the text of a part, or the message that it is; what else there is, is named and left out.
func (w *mailWriter) part(p mailPart, depth int) (string, error) {
	if w.parts++; w.parts > maxMailParts || depth > maxMailDepth {
		return "", fmt.Errorf("%w: parts over %d deep, or more than %d", ErrTooLarge, maxMailDepth, maxMailParts)
	}
	kind, params, err := mime.ParseMediaType(cmp.Or(p.header("Content-Type"), "text/plain"))
	if err != nil && kind == "" {
		kind = "text/plain"
	}
	disposition, about, _ := mime.ParseMediaType(p.header("Content-Disposition")) // one that cannot be read says nothing
	name := oneLine(mailWords(cmp.Or(about["filename"], params["name"])), 200)
	switch {
	case kind == "multipart/encrypted", kind == "application/pkcs7-mime" && params["smime-type"] != "signed-data":
		return "", ErrEncrypted
	case strings.HasPrefix(kind, "multipart/"):
		return w.several(p, kind, params["boundary"], depth)
	case kind == "message/rfc822":
		inner := &mailWriter{source: w.source, doc: &Document{}, parts: w.parts}
		raw, err := io.ReadAll(decoded(p))
		if err = errors.Join(err, inner.message(raw, depth+1)); err != nil { // of this message alone; what is too long is so for the whole, too
			return inner.out.String() + unreadable(err), nil
		}
		w.parts = inner.parts
		return inner.out.String(), nil
	case disposition == "attachment" || !strings.HasPrefix(kind, "text/"):
		w.attached = append(w.attached, cmp.Or(name, kind))
		return "", nil
	}
	raw, err := io.ReadAll(io.LimitReader(decoded(p), 4*w.maxBytes))
	if err != nil && len(raw) == 0 {
		return unreadable(err), nil
	}
	text := decode(raw, fmtText, params["charset"])
	if enc := narrow(params["charset"]); enc != nil && bytes.IndexByte(raw, 0x1b) >= 0 { // one that shifts between alphabets looks like ASCII
		text = decodeWith(enc, raw)
	}
	if kind == "text/html" {
		var links []string
		text, links = htmlFragment(text)
		w.doc.Links = append(w.doc.Links, links[:min(len(links), max(0, 4*maxLinks-len(w.doc.Links)))]...)
	}
	return text, nil
}

func unreadable(err error) string {
	return "[A part of this message cannot be read: " + oneLine(err.Error(), 100) + "]"
}

// several is the text of a part that has parts: of alternatives the plain text, or else the last, of related ones the first, of others all.
func (w *mailWriter) several(p mailPart, kind, boundary string, depth int) (string, error) {
	var texts []string
	r := multipart.NewReader(p.body, boundary)
	for n := 0; n < maxMailParts; n++ {
		next, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && n > 0 {
			break
		}
		if err != nil {
			texts = append(texts, unreadable(err))
			break
		}
		text, err := w.part(mailPart{next.Header.Get, next}, depth+1)
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if kind == "multipart/alternative" {
			plain := strings.HasPrefix(strings.ToLower(cmp.Or(next.Header.Get("Content-Type"), "text/plain")), "text/plain")
			if texts = []string{text}; plain {
				break
			}
			continue
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n"), nil
}

// decoded is the body of a part as it was before it was sent. What follows damage in it is lost.
func decoded(p mailPart) io.Reader {
	switch strings.ToLower(strings.TrimSpace(p.header("Content-Transfer-Encoding"))) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, p.body)
	case "quoted-printable":
		return quotedprintable.NewReader(p.body)
	}
	return p.body
}

var mailDecoder = mime.WordDecoder{CharsetReader: charset.NewReaderLabel}

// mailWords is a line of the head in plain words.
func mailWords(value string) string {
	value = decode([]byte(value), fmtText, "")
	if words, err := mailDecoder.DecodeHeader(value); err == nil {
		value = words
	}
	return oneLine(value, 500)
}
