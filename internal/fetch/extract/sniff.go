package extract

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// format is a kind of document that has a reader of its own.
type format int

const (
	fmtUnknown format = iota // or no text
	fmtMarkdown
	fmtText
	fmtSource
	fmtHTML
	fmtPDF
	fmtDocx
	fmtXlsx
	fmtPptx
	fmtOdt
	fmtOds
	fmtOdp
	fmtEpub
	fmtMail
	fmtMbox
	fmtNotebook
	fmtSubtitles
	fmtRTF
	fmtTeX
	fmtCSV
	fmtTSV
	fmtJSON
	fmtXML
)

// What other formats are read as where they are not what they seem.
const (
	textMedia, textExtractor = "text/plain", "text/2"
	jsonMedia, jsonExtractor = "application/json", "json/3"
)

// formats are what is known of each format. PDF, Office files and books have no types: they are told by their bytes alone, whatever a header says.
var formats = [...]struct {
	media     string                              // its media type
	extractor string                              // name and version of its reader
	read      func(s source, doc *Document) error // fills in what the table does not know; nil for what has no text
	endings   string                              // of file names, without the dot
	types     string                              // media types that name it in a Content-Type
	main      string                              // the part of an archive that holds or lists the text; "" for what is no archive
	signed    bool                                // its files may hold any bytes, or begin with a sign of theirs
	lines     bool                                // LinesOf knows the lines of its documents
}{
	fmtUnknown:  {media: "application/octet-stream"},
	fmtMarkdown: {media: "text/markdown", extractor: "markdown/3", read: readMarkdown, types: "text/markdown text/x-markdown", endings: "md markdown mdown mkd mdx qmd rmd", lines: true},
	fmtText:     {media: textMedia, extractor: textExtractor, read: readText, types: "text/plain", endings: "txt text rst org log adoc asciidoc textile nfo bib ris diff patch", lines: true},
	fmtSource: {media: "text/x-source", extractor: textExtractor, read: readText, types: "text/css text/javascript application/javascript application/yaml application/toml application/sql", lines: true,
		endings: "go py pyi js mjs cjs jsx ts tsx rs java kt kts scala groovy c h cc cpp cxx hh hpp hxx m mm cs fs vb swift dart zig nim d " +
			"rb pl pm php lua r jl hs ml mli ex exs erl clj cljs el lisp scm sh bash zsh fish ps1 bat cmd sql graphql proto thrift " +
			"yaml yml toml ini cfg conf properties env css scss sass less vue svelte mod sum mk cmake gradle tf hcl nix dockerfile asm s f90 for pas v sv vhd"},
	fmtHTML:      {media: "text/html", extractor: "html/3", read: readHTML, types: "text/html application/xhtml+xml", endings: "html htm xhtml xht shtml"},
	fmtPDF:       {media: "application/pdf", extractor: "pdf/2", endings: "pdf", signed: true},
	fmtDocx:      {media: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", extractor: "docx/2", read: readDocx, endings: "docx docm", main: docxMain, signed: true},
	fmtXlsx:      {media: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", extractor: "xlsx/1", read: readXlsx, endings: "xlsx xlsm", main: xlsxMain, signed: true},
	fmtPptx:      {media: "application/vnd.openxmlformats-officedocument.presentationml.presentation", extractor: "pptx/1", read: readPptx, endings: "pptx pptm ppsx", main: pptxMain, signed: true},
	fmtOdt:       {media: "application/vnd.oasis.opendocument.text", extractor: "opendocument/1", read: readOpenDocument, endings: "odt", main: openDocumentMain, signed: true},
	fmtOds:       {media: "application/vnd.oasis.opendocument.spreadsheet", extractor: "opendocument/1", read: readOpenDocument, endings: "ods", main: openDocumentMain, signed: true},
	fmtOdp:       {media: "application/vnd.oasis.opendocument.presentation", extractor: "opendocument/1", read: readOpenDocument, endings: "odp", main: openDocumentMain, signed: true},
	fmtEpub:      {media: "application/epub+zip", extractor: "epub/1", read: readEpub, endings: "epub", main: epubMain, signed: true},
	fmtMail:      {media: "message/rfc822", extractor: "mail/1", read: readMail, types: "message/rfc822", endings: "eml", signed: true},
	fmtMbox:      {media: "application/mbox", extractor: "mail/1", read: readMail, types: "application/mbox", endings: "mbox", signed: true},
	fmtNotebook:  {media: "application/x-ipynb+json", extractor: "notebook/1", read: readNotebook, types: "application/x-ipynb+json", endings: "ipynb"},
	fmtSubtitles: {media: "text/vtt", extractor: "subtitles/1", read: readSubtitles, types: "text/vtt application/x-subrip", endings: "srt vtt", lines: true},
	fmtRTF:       {media: "application/rtf", extractor: "rtf/1", read: readRTF, types: "application/rtf text/rtf", endings: "rtf", signed: true},
	fmtTeX:       {media: "text/x-tex", extractor: "tex/1", read: readTeX, types: "application/x-tex text/x-tex", endings: "tex latex ltx", lines: true},
	fmtCSV:       {media: "text/csv", extractor: "table/5", read: readTable, types: "text/csv application/csv", endings: "csv", lines: true},
	fmtTSV:       {media: "text/tab-separated-values", extractor: "table/5", read: readTable, types: "text/tab-separated-values", endings: "tsv tab", lines: true},
	fmtJSON:      {media: jsonMedia, extractor: jsonExtractor, read: readJSON, types: "application/json text/json application/x-ndjson application/jsonl", endings: "json ndjson jsonl geojson jsonld", lines: true},
	fmtXML:       {media: "application/xml", extractor: "xml/3", read: readXML, types: "application/xml text/xml", endings: "xml rss atom rdf opml"},
}

func (f format) mediaType() string { return formats[f].media }

// HasLines reports whether LinesOf knows the lines of documents of this media type.
func HasLines(mediaType string) bool {
	for _, f := range formats {
		if f.lines && f.media == mediaType {
			return true
		}
	}
	return false
}

// Outdated reports an extractor of an earlier version that kept count of lines: what it read cannot be read again, and so its lines are not known any more.
func Outdated(extractor string) bool {
	name, _, _ := strings.Cut(extractor, "/")
	for _, f := range formats {
		if f.lines && strings.HasPrefix(f.extractor, name+"/") {
			return f.extractor != extractor
		}
	}
	return false
}

// bareNames are files that carry text under a name without extension.
const bareNames = " readme license licence copying authors contributors changelog changes news todo install notice makefile dockerfile gemfile rakefile "

// byEnding and byType find formats by the ending of a name and by a media type.
var byEnding, byType = func() (endings, types map[string]format) {
	endings, types = map[string]format{}, map[string]format{}
	for f, about := range formats {
		for ending := range strings.FieldsSeq(about.endings) {
			endings[ending] = format(f)
		}
		for media := range strings.FieldsSeq(about.types) {
			types[media] = format(f)
		}
	}
	return endings, types
}()

// Known reports whether a file of this name looks like something Extract can read, by its extension (or as README, LICENSE and the like). It opens nothing:
// the file may still turn out to be binary.
func Known(name string) bool { return byName(name) != fmtUnknown }

func byName(name string) format {
	if isURL(name) {
		if u, err := url.Parse(name); err == nil {
			name = u.Path
		}
	}
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if ext := path.Ext(base); ext != "" {
		return byEnding[ext[1:]]
	}
	if strings.Contains(bareNames, " "+base+" ") {
		return fmtText
	}
	return fmtUnknown
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// Formats names for people what Extract reads.
const Formats = "Markdown, text, HTML, PDF, Word, Excel, PowerPoint, OpenDocument, RTF, EPUB, mail (eml, mbox), notebooks, subtitles, TeX, CSV, JSON and source code"

// parseContentType gives fmtUnknown and "" for all that a Content-Type leaves open.
func parseContentType(header string) (f format, charset string) {
	if len(header) > 256 {
		return fmtUnknown, ""
	}
	// A broken parameter leaves the type, as the error promises; anything else broken leaves nothing.
	media, params, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return fmtUnknown, ""
	}
	f = byType[media]
	switch {
	case f != fmtUnknown:
	case strings.HasSuffix(media, "+json"):
		f = fmtJSON
	case strings.HasSuffix(media, "+xml"):
		f = fmtXML
	}
	return f, params["charset"]
}

// source is a document to be read and what is known about it.
type source struct {
	format        format
	name, charset string // charset is what the transport says, or ""
	raw           []byte
	maxBytes      int64
	archive       *archive // of a format that is one
	lines         *Lines   // notes the lines of the text; nil notes nothing
}

func (s source) text() string { return decode(s.raw, s.format, s.charset) }

// sniff decides what the bytes are. A signature that cannot be text wins over the name; then the name; then what the text looks like; then what was said of it.
func sniff(name string, said format, raw []byte) format {
	named := byName(name)
	if isURL(name) && named == fmtSource && said != fmtUnknown {
		named = fmtUnknown // the address of a page that a program makes, such as index.php
	}
	head := bytes.TrimLeft(bytes.TrimPrefix(raw[:min(len(raw), 1024)], []byte("\xef\xbb\xbf")), "\x00\t\n\f\r ")
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return fmtPDF
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return fmtRTF
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		if f := archiveFormat(raw); f != fmtUnknown {
			return f
		}
		if formats[named].main == "" {
			return fmtUnknown
		}
		return named
	case formats[named].signed && !looksHTML(head):
		return named // the reader will say how it is damaged
	case isBinary(raw):
		return fmtUnknown
	case looksHTML(head) && (isURL(name) || named == fmtUnknown || formats[named].signed):
		return fmtHTML
	}
	look, sure := byLook(head)
	switch {
	case named != fmtUnknown && !(isURL(name) && sure && (named == fmtHTML || named == fmtSource)):
		return named
	case said == fmtUnknown, sure, look != fmtText && said == fmtText:
		return look
	}
	return said
}

// byLook judges text without a telling name. Only formats with a plain signature count; all else is plain text. Of markup it is sure; the first characters of
// Markdown may begin any text.
func byLook(head []byte) (f format, sure bool) {
	switch {
	case beginsWith(head, "<?xml", "<rss", "<feed"):
		return fmtXML, true
	case beginsWith(head, "WEBVTT"):
		return fmtSubtitles, true
	case beginsWith(head, "{\"", "[{", "{\n", "{\r"):
		return fmtJSON, true
	case beginsWith(head, "---\n", "---\r\n", "# "):
		return fmtMarkdown, false
	}
	return fmtText, false
}

func beginsWith(head []byte, any ...string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) })
}

// furtherHead is what may stand before the first tag of a page: comments and an XML declaration.
var furtherHead = regexp.MustCompile(`(?s)^(?:[\t\n\f\r ]+|<!--.*?-->|<\?xml.*?\?>)+`)

// looksHTML asks for a tag that opens pages.
func looksHTML(head []byte) bool {
	head = bytes.ToLower(head)
	head = head[len(furtherHead.Find(head)):]
	return beginsWith(head, "<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<script", "<div", "<p>", "<h1", "<table")
}

// isBinary tells bytes that are no text in any encoding by their control characters: UTF-16 and UTF-32 are recognised by their mark only.
func isBinary(raw []byte) bool {
	if wide, _ := byMark(raw); wide != nil {
		return false
	}
	sample := raw[:min(len(raw), 64<<10)]
	var nul, control int
	for _, b := range sample {
		switch {
		case b == 0:
			nul++
		case b < 0x20 && b != '\t' && b != '\n' && b != '\r' && b != '\f' && b != 0x1b, b == 0x7f:
			control++
		}
	}
	if nul*1000 > len(sample) || control*20 > len(sample) {
		return true
	}
	return nul+control > 0 && binaryType(raw) != fmtUnknown.mediaType()
}

// binaryType names the media type of bytes that are no text, as far as a signature tells.
func binaryType(raw []byte) string {
	t := http.DetectContentType(raw)
	if strings.HasPrefix(t, "text/") {
		return fmtUnknown.mediaType()
	}
	return t
}

// decode gives the text of raw in UTF-8. A byte order mark decides; then bytes that are valid UTF-8 to the end are UTF-8 whatever they claim; then the charset
// that came with them; then what the document declares; then the likeliest encoding by letter statistics. Bytes without meaning become U+FFFD.
func decode(raw []byte, f format, label string) string {
	if enc, skip := byMark(raw); enc != nil {
		return decodeWith(enc, raw[skip:])
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if utf8.Valid(raw) {
		return unsafe.String(unsafe.SliceData(raw), len(raw))
	}
	if mostlyUTF8(raw) {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	enc := narrow(label)
	if enc == nil {
		enc = declared(raw, f)
	}
	if enc == nil {
		enc = guess(raw, f)
	}
	return decodeWith(enc, raw)
}

// decodeWith never fails: the decoders put U+FFFD for what they cannot read, and should one stop all the same, the bytes are read as broken UTF-8.
func decodeWith(enc encoding.Encoding, raw []byte) string {
	text, err := enc.NewDecoder().Bytes(raw)
	if err != nil {
		text = raw
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// byMark recognises the wide encodings by their byte order mark and says how long the mark is.
func byMark(raw []byte) (enc encoding.Encoding, skip int) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe\x00\x00")):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), 4
	case bytes.HasPrefix(raw, []byte("\x00\x00\xfe\xff")):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), 4
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), 2
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), 2
	}
	return nil, 0
}

// mostlyUTF8 accepts valid UTF-8, and text with a few broken bytes, as when it was cut in the middle of a letter: other encodings form valid multi-byte letters
// by accident only.
func mostlyUTF8(raw []byte) bool {
	var good, bad int
	for _, r := range string(raw) {
		switch {
		case r == utf8.RuneError:
			bad++
		case r >= utf8.RuneSelf:
			good++
		}
	}
	return good >= 10*bad
}

// encodingName is what an XML declaration or an HTML meta element says of the encoding.
var encodingName = regexp.MustCompile(`(?i)(?:^\s*<\?xml[^>]*\sencoding|<meta\s[^>]*charset)\s*=\s*["']?\s*([a-z0-9._:-]+)`)

// declared reads the encoding out of the head of a document.
func declared(raw []byte, f format) encoding.Encoding {
	m := encodingName.FindSubmatch(raw[:min(len(raw), 4096)])
	if m == nil || f != fmtHTML && f != fmtXML {
		return nil
	}
	return narrow(string(m[1]))
}

// narrow finds the encoding of a label, or nil. A claim of UTF-8 or UTF-16 is known to be false where it is asked.
func narrow(label string) encoding.Encoding {
	enc, name := charset.Lookup(label)
	if strings.HasPrefix(name, "utf-") || name == "replacement" {
		return nil
	}
	return enc
}

// guess asks letter statistics; windows-1252 reads anything when they are silent. The detector orders equals by chance, so ties go by name.
func guess(raw []byte, f format) encoding.Encoding {
	detector := chardet.NewTextDetector()
	if f == fmtHTML {
		detector = chardet.NewHtmlDetector()
	}
	results, _ := detector.DetectAll(raw[:min(len(raw), 256<<10)]) // an error comes without results
	var best chardet.Result
	for _, r := range results {
		if r.Confidence > best.Confidence || r.Confidence == best.Confidence && r.Charset < best.Charset {
			best = r
		}
	}
	// The detector spells one name its own way.
	if enc := narrow(strings.Replace(best.Charset, "GB-18030", "gb18030", 1)); enc != nil {
		return enc
	}
	return charmap.Windows1252
}
