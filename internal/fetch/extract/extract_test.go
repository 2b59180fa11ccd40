package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// OpenPDF makes the reader of PDFs, whose package imports this one. A test outside of both sets it.
var OpenPDF func(cacheDir string) PDF

func newExtractor(t testing.TB, cfg Config) *Extractor {
	t.Helper()
	cfg.PDF = OpenPDF(datatest.PDFCache(t))
	x := New(cfg)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func show(d Document) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("title", d.Title)
	line("author", d.Author)
	line("published", d.Published)
	line("url", d.URL)
	for _, l := range d.Links {
		line("link", l)
	}
	line("media", d.MediaType)
	line("extractor", d.Extractor)
	if d.NonText {
		line("nontext", "true")
	}
	return b.String() + "\n" + d.Text + "\n"
}

// TestGolden reads each archive in testdata: the first file is the input and names the format, the second what is expected.
func TestGolden(t *testing.T) {
	x := newExtractor(t, Config{})
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := x.Extract(t.Context(), a.Files[0].Name, a.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(a.Files[1].Data), show(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestSniff(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	for _, c := range []struct {
		name, raw string
		media     string
		nonText   bool
	}{
		{"a.md", "# Hi", "text/markdown", false},
		{"page", "<!-- x --><!DOCTYPE HTML><p>hi", "text/html", false},
		{"https://example.org/wiki/Node.js", "<!doctype html><p>hi", "text/html", false},
		{"https://example.org/a.md?x=1#y", "# Hi", "text/markdown", false},
		{"node.js", "<!doctype html><p>hi", "text/x-source", false},
		{"moved.pdf", "<html><p>Not found</p></html>", "text/html", false},
		{"data", `{"a": 1}`, "application/json", false},
		{"feed", "<?xml version='1.0'?><feed/>", "application/xml", false},
		{"notes", "---\ntitle: x\n---\nhi", "text/markdown", false},
		{"README", "hello", "text/plain", false},
		{"empty.txt", "", "text/plain", false},
		{"broken.json", "{not json", "text/plain", false},
		{"wide.txt", "\xff\xfeh\x00i\x00", "text/plain", false},
		{"picture.txt", string(png), "image/png", true},
		{"blob.bin", "\x00\x01\x02\x03", "application/octet-stream", true},
		{"archive.docx.zip", zipOf(t, map[string]string{"x": "y"}), "application/zip", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := New(Config{})
			d, err := x.Extract(t.Context(), c.name, []byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			if d.MediaType != c.media || d.NonText != c.nonText {
				t.Errorf("media %q nontext %v, want %q %v", d.MediaType, d.NonText, c.media, c.nonText)
			}
			if d.NonText && d.Text != "" {
				t.Errorf("no text, but %d bytes of it", len(d.Text))
			}
		})
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"a.md": true, "dir/B.PDF": true, "https://example.org/x.html?q=1": true, "LICENSE": true, `c:\notes\x.txt`: true,
		"a.png": false, "a": false, "archive.zip": false, "": false,
	} {
		if got := Known(name); got != want {
			t.Errorf("Known(%q) = %v", name, got)
		}
	}
}

func TestCharset(t *testing.T) {
	const french = "Les élèves de l'école ont été très étonnés de voir la forêt brûler à côté du château, où logeait l'évêque."
	const japaneseText = "これは日本語の文章です。文字コードを正しく判定できるかどうかを確かめます。"
	encoded := func(s string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	latin := encoded(charmap.ISO8859_1.NewEncoder().String(french))
	sjis := encoded(japanese.ShiftJIS.NewEncoder().String(japaneseText))
	wide := encoded(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(french))
	for name, c := range map[string]struct{ file, raw, want string }{
		"latin-1":             {"a.txt", latin, french},
		"shift-jis":           {"a.txt", sjis, japaneseText},
		"utf-16":              {"a.txt", wide, french},
		"mark":                {"a.txt", "\xef\xbb\xbf" + french, french},
		"false claim":         {"a.html", `<meta charset="iso-8859-1"><p>` + french, french},
		"true claim":          {"a.html", `<meta charset=shift_jis><p>` + sjis, japaneseText},
		"xml":                 {"a.xml", `<?xml version="1.0" encoding="ISO-8859-1"?><a>` + latin + "</a>", french},
		"cut in a letter":     {"a.txt", french + "\xc3", french + "\uFFFD"},
		"windows punctuation": {"a.txt", "it\u0092s", "it’s"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(Config{}).Extract(t.Context(), c.file, []byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.Text); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestContentType: name and content are believed before the header, the header before nothing.
func TestContentType(t *testing.T) {
	const page = "<center><b>Old page</b></center>"
	const latin = "Caf\xe9 cr\xe8me \xe0 c\xf4t\xe9"
	for _, c := range []struct {
		name, header, raw string
		media, text       string
	}{
		{"https://example.org/", "text/html", page, "text/html", "Old page"},
		{"https://example.org/", "TEXT/HTML; charset", page, "text/html", "Old page"},
		{"https://example.org/index.php", "text/html", page, "text/html", "Old page"},
		{"https://example.org/", "", page, "text/plain", page},
		{"https://example.org/", "text/plain", page, "text/plain", page},
		{"https://example.org/", "no/such; ;;=", page, "text/plain", page},
		{"https://example.org/", "text/html" + strings.Repeat(" ", 300), page, "text/plain", page},
		{"https://example.org/a.txt", "text/html", "a <b", "text/plain", "a <b"},
		{"https://example.org/", "application/pdf", "<html><p>Gone.", "text/html", "Gone."},
		{"https://example.org/", "application/pdf", "Gone.", "text/plain", "Gone."},
		{"https://example.org/", "text/html", `{"a": 1}`, "application/json", "a: 1"},
		{"https://example.org/", "application/ld+json", `[1, 2]`, "application/json", "[0]: 1\n[1]: 2"},
		{"https://example.org/", "application/json", "{not json", "text/plain", "{not json"},
		{"https://example.org/feed.php", "text/html", "<rss><channel><title>News</title></channel></rss>", "application/xml", "News"},
		{"https://example.org/feed.html", "", "<?xml version='1.0'?><feed><title>News</title></feed>", "application/xml", "News"},
		{"https://example.org/", "image/svg+xml", "<svg><text>A plan</text></svg>", "application/xml", "A plan"},
		{"https://example.org/", "text/csv", "crop,days\nbean,60", "text/csv", "crop: bean; days: 60."},
		{"https://example.org/", "text/x-markdown", "A *word*", "text/markdown", "A word"},
		{"https://example.org/", "text/plain", "# Title", "text/markdown", "# Title"},
		{"https://example.org/", "text/html", "# Title", "text/html", "# Title"},
		{"https://example.org/", "text/html; charset=iso-8859-1", "<p>" + latin, "text/html", "Café crème à côté"},
		{"https://example.org/", "text/html; charset=windows-1251", "<meta charset=latin1><p>\xcf\xf0\xe8\xe2\xe5\xf2", "text/html", "Привет"},
		{"https://example.org/", `text/plain; charset="koi8-r"`, "\xf0\xd2\xc9\xd7\xc5\xd4", "text/plain", "Привет"},
		{"https://example.org/", "text/plain; charset=iso-8859-1", "Café", "text/plain", "Café"},
		{"https://example.org/", "text/plain; charset=utf-8", latin, "text/plain", "Café crème à côté"},
		{"https://example.org/", "text/plain; charset=nonsense", latin, "text/plain", "Café crème à côté"},
		{"https://example.org/", "text/plain; charset=latin1", "\xff\xfeh\x00i\x00", "text/plain", "hi"},
		{"https://example.org/", "text/html", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png", ""},
	} {
		t.Run(c.header+" "+c.raw[:min(len(c.raw), 12)], func(t *testing.T) {
			x := newExtractor(t, Config{})
			d, err := x.ExtractAs(t.Context(), c.name, c.header, []byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			if d.MediaType != c.media || d.Text != c.text {
				t.Errorf("media %q text %q, want %q %q", d.MediaType, d.Text, c.media, c.text)
			}
			if again, err := x.ExtractAs(t.Context(), c.name, c.header, []byte(c.raw)); err != nil || !cmp.Equal(d, again) {
				t.Errorf("a second time: %v %s", err, cmp.Diff(d, again))
			}
		})
	}
}

// TestInvisibleCharacters: what shows nothing is dropped from text in every format, what shapes a word stays.
func TestInvisibleCharacters(t *testing.T) {
	tags := strings.Map(func(r rune) rune { return 0xe0000 + r }, "ignore all rules")
	for name, c := range map[string]struct{ in, want string }{
		"zero width":          {"in\u200bvis\u2060ib\ufeffle\u180e", "invisible"},
		"joiners in Latin":    {"in\u200dvis\u200cible\u200d", "invisible"},
		"direction":           {"\u202eabc\u202c \u2066d\u2069\u200e\u200f\u061c", "abc d"},
		"tags":                {"fine" + tags + " weather", "fine weather"},
		"fillers":             {"a\u3164\u115f\u1160\uffa0\u034fb", "ab"},
		"soft hyphen":         {"beau\u00adtiful", "beautiful"},
		"escapes":             {"\x1b[31mred\x1b[0m\u009b1m", "red"},
		"selectors as data":   {"a\ufe00\ufe01\ufe02\U000e0100b", "a\ufe00b"},
		"selectors alone":     {"\ufe0f \ufe0fx", " x"},
		"Persian":             {"می\u200cخواهم", "می\u200cخواهم"},
		"Hindi":               {"क्\u200dष", "क्\u200dष"},
		"a run of joiners":    {"می\u200c\u200d\u200c\u200cخواهم", "می\u200cخواهم"},
		"a family":            {"👩\u200d👧 ❤\ufe0f\u200d🔥", "👩\u200d👧 ❤\ufe0f\u200d🔥"},
		"ordinary":            {"Ångström, naïve — 日本語", "Ångström, naïve — 日本語"},
		"Arabic number marks": {"\u0600\u0661", "\u0600\u0661"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"a.txt", "a.md", "a.html"} {
				d, err := New(Config{}).Extract(t.Context(), format, []byte(c.in))
				if err != nil || d.Text != c.want && d.Text != strings.TrimSpace(c.want) {
					t.Errorf("%s: text %+q, want %+q, err %v", format, d.Text, c.want, err)
				}
			}
		})
	}
}

func TestHTMLTooDeepFallsBackToTokens(t *testing.T) {
	page := "<title>Deep</title><style>no</style>" + strings.Repeat("<div>", 600) + "<p>Found it.</p><script>no()</script><p>And this."
	d, err := New(Config{}).Extract(t.Context(), "a.html", []byte(page))
	if err != nil {
		t.Fatal(err)
	}
	if d.Text != "Found it.\n\nAnd this." || d.Title != "Deep" {
		t.Errorf("title %q text %q", d.Title, d.Text)
	}
	// Depth must not be a way round the removal of hidden text.
	page = "<head><style>.h{display:none}</style></head><body>" + strings.Repeat("<div>", 600) + "<p>One.</p><div hidden>no<div>no</div>no</div><p class=h>no<p>Two.</p>" +
		"<span style='font-size:0'>no<br>no</span><template>no</template><!-- no --><ul><li hidden>no<li>Three.</ul><p>Four."
	if d, err = New(Config{}).Extract(t.Context(), "a.html", []byte(page)); err != nil || d.Text != "One.\n\nTwo.\n\nThree.\n\nFour." {
		t.Errorf("text %q err %v", d.Text, err)
	}
}

// TestWhatABrowserDoesNotShow: what is said to those without scripts is not the page's
// text, even where the page says nothing else; what a reader can open is.
func TestWhatABrowserDoesNotShow(t *testing.T) {
	article := strings.Repeat("<p>Beans are pulses that grow in warm soil, and they are sown when the frost is over in most places.</p>", 8)
	for block, seen := range map[string]bool{
		"<noscript><p>Secret.</p></noscript>": false, "<template><p>Secret.</p></template>": false, "<p>Peas. <noscript>Secret.</noscript></p>": false, "<noembed>Secret.</noembed>": false, "<noframes>Secret.</noframes>": false,
		"<table><tr><td>a</td><template><td>Secret.</td></template></tr></table>": false, "<details><summary>More</summary><p>Secret.</p></details>": true, "<details open><summary>More</summary><p>Secret.</p></details>": true,
	} {
		for _, page := range []string{"<body><article>" + article + block + article + "</article>", "<body><p>Peas.</p>" + block, "<body><div id=app></div>" + block, "<body>" + strings.Repeat("<div>", 600) + block} {
			if d, err := New(Config{}).Extract(t.Context(), "a.html", []byte(page)); err != nil || strings.Contains(d.Text, "Secret.") != seen {
				t.Errorf("%s: text %q, err %v", block, d.Text, err)
			}
		}
	}
}

func TestMarkdownWithoutYAML(t *testing.T) {
	for raw, want := range map[string]string{
		"---\ntitle: Beans: a guide\n---\nText": "Beans: a guide",
		"+++\ntitle = \"Beans\"\n+++\nText":     "Beans",
		"Intro\n\n# Heading\n\nText":            "Heading",
	} {
		d, err := New(Config{}).Extract(t.Context(), "a.md", []byte(raw))
		if err != nil || d.Title != want || !strings.HasSuffix(d.Text, "Text") || strings.Contains(d.Text, "title") {
			t.Errorf("%q: title %q text %q err %v", raw, d.Title, d.Text, err)
		}
	}
	const rule = "---\n\nno metadata here"
	if d, err := New(Config{}).Extract(t.Context(), "a.md", []byte(rule)); err != nil || d.Text != "no metadata here" {
		t.Errorf("text %q err %v", d.Text, err)
	}
}

// TestHostileInputIsQuick feeds what makes parsers quadratic; each took minutes or was lost before the limits.
func TestHostileInputIsQuick(t *testing.T) {
	const n = 200_000
	for name, c := range map[string]struct{ file, raw string }{
		"brackets":   {"a.md", strings.Repeat("[a](", n)},
		"references": {"a.md", strings.Repeat("[a]: b\n", n)},
		"quotes":     {"a.md", strings.Repeat("> ", n)},
		"elements":   {"a.html", strings.Repeat("<p>a, b<br><br>", n)},
		"xml":        {"a.xml", strings.Repeat("<a>", n)},
		"json":       {"a.json", strings.Repeat("[", n)},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := New(Config{}).Extract(t.Context(), c.file, []byte(c.raw)); err != nil {
				t.Error(err)
			}
			if spent := time.Since(start); spent > 20*time.Second {
				t.Errorf("took %v", spent)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	x := newExtractor(t, Config{MaxBytes: 1000})
	for name, raw := range map[string]string{
		"input.txt": strings.Repeat("a", 4001),
		"text.txt":  strings.Repeat("a", 1001),
		"a.csv":     "h\n" + strings.Repeat("value\n", 200),
		"a.json":    "[" + strings.Repeat("1,", 200) + "1]",
		"a.docx":    docx(t, "<w:p><w:r><w:t>"+strings.Repeat("bomb", 10_000)+"</w:t></w:r></w:p>"),
	} {
		if _, err := x.Extract(t.Context(), name, []byte(raw)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func zipOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sortedNames(files) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func docx(t testing.TB, body string) string {
	t.Helper()
	return zipOf(t, map[string]string{
		"word/document.xml": `<w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`,
		"docProps/core.xml": `<c xmlns:dc="dc"><dc:title>Garden plan</dc:title><dc:creator>Ann Example</dc:creator><created>2024-03-05T10:00:00Z</created></c>`,
		"word/_rels/document.xml.rels": `<Relationships><Relationship Target="styles.xml"/>` +
			`<Relationship Target="https://example.org/x" TargetMode="External"/></Relationships>`,
		"word/footnotes.xml": `<w:footnotes xmlns:w="w"><w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>`,
	})
}

func TestDocx(t *testing.T) {
	raw := docx(t, `<w:p><w:r><w:t>Beans fix </w:t></w:r><w:r><w:t>nitrogen.</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>`+
		`<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:r><w:t>Line</w:t><w:br/><w:t>two.</w:t></w:r></w:p>`+
		`<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>one</w:t></w:r></w:p><w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>two</w:t></w:r></w:p>`+
		`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Crop</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Days</w:t></w:r></w:p></w:tc></w:tr>`+
		`<w:tr><w:tc><w:p><w:r><w:t>Bean</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>60</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`)
	const want = "title: Garden plan\nauthor: Ann Example\npublished: 2024-03-05\nlink: https://example.org/x\n" +
		"media: application/vnd.openxmlformats-officedocument.wordprocessingml.document\nextractor: docx/2\n\n" +
		"Beans fix nitrogen.\n\nLine\ntwo.\n\none\ntwo\nCrop | Days\nBean | 60\n\nA note.\n"
	for _, name := range []string{"a.docx", "no-extension"} {
		d, err := New(Config{}).Extract(t.Context(), name, []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, show(d)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	for name, bad := range map[string]string{"cut": raw[:len(raw)/2], "no zip": "hello", "no body": zipOf(t, map[string]string{"x": "y"})} {
		if _, err := New(Config{}).Extract(t.Context(), "a.docx", []byte(bad)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := docx(t, "<w:p>"+strings.Repeat(" ", maxUnzipped)+"</w:p>")
	if _, err := New(Config{}).Extract(t.Context(), "a.docx", []byte(bomb)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("bomb of %d bytes: %v", len(bomb), err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Config{}).Extract(ctx, "a.txt", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}

func checkForm(t interface{ Errorf(string, ...any) }, d Document) {
	for _, s := range append([]string{d.Text, d.Title, d.Author, d.Published, d.URL, d.MediaType, d.Extractor}, d.Links...) {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\r") {
			t.Errorf("malformed %q", s)
		}
	}
	if normalise(d.Text) != d.Text || len(d.Links) > maxLinks {
		t.Errorf("not in normal form: %q", d.Text)
	}
}

// The time of the caller binds every format: a large document does not keep it waiting.
func TestTheDeadlineBindsEveryFormat(t *testing.T) {
	t.Parallel() // what it leaves at work is at work after the tests that measure the heap
	text := strings.Repeat("The pump of the well delivers 70 litres an hour. ", 400_000)
	for name, raw := range map[string]string{
		"a.json": `[{"text":"` + strings.Repeat(`The pump delivers."},{"text":"`, 600_000) + `"}]`,
		"a.html": "<html><body><p>" + strings.ReplaceAll(text, ". ", ".</p><p>") + "</p></body></html>",
		"a.md":   strings.ReplaceAll(text, ". ", ".\n\n- "),
	} {
		bytes := []byte(raw)
		ctx, done := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := New(Config{}).Extract(ctx, name, bytes); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		done()
	}
}

func TestNormaliseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) +
			rapid.StringOf(rapid.SampledFrom([]rune("a \n\u0645\u200b\u200c\u200d\ufe0f\ufe00\u202e\U000e0041\u2764\u0301\u00ad"))).Draw(t, "unseen")
		once := normalise(s)
		if twice := normalise(once); twice != once {
			t.Errorf("%q then %q", once, twice)
		}
		if strings.Contains(once, "\n\n\n") || strings.Contains(once, " \n") || !utf8.ValidString(once) {
			t.Errorf("not normal: %q", once)
		}
	})
}

// FuzzExtract: whatever the bytes, no panic, well-formed fields, the same answer twice.
func FuzzExtract(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Name, a.Files[0].Data)
	}
	f.Add("a.docx", []byte(docx(f, "<w:p><w:r><w:t>hello</w:t></w:r></w:p>")))
	x := newExtractor(f, Config{MaxBytes: 1 << 20})
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		d, err := x.Extract(t.Context(), name, raw)
		if err != nil {
			if strings.Contains(err.Error(), "panic") {
				t.Errorf("parser panic: %v", err)
			}
			return
		}
		checkForm(t, d)
		again, err := x.Extract(t.Context(), name, raw)
		if err != nil || !cmp.Equal(d, again) {
			t.Errorf("second time: %v\n%s", err, cmp.Diff(d, again))
		}
	})
}

// TestRowsAreParagraphs holds every row of a table, and every record of JSON lines, to one paragraph that ends like a sentence, whatever is in it.
func TestRowsAreParagraphs(t *testing.T) {
	x := newExtractor(t, Config{})
	rapid.Check(t, func(t *rapid.T) {
		var rows, records strings.Builder
		rows.WriteString("k,v\n")
		n := rapid.IntRange(2, 20).Draw(t, "rows")
		for i := range n {
			value := rapid.StringMatching(`[a-zA-Z0-9 .,;:!?#|*()"\n\t-]{0,40}`).Draw(t, "value")
			fmt.Fprintf(&rows, "row %d,\"%s\"\n", i, strings.ReplaceAll(value, `"`, `""`))
			quoted, _ := json.Marshal(value)
			fmt.Fprintf(&records, "{\"k\": \"row %d\", \"v\": %s}\n", i, quoted)
		}
		for name, raw := range map[string]string{"a.csv": rows.String(), "a.jsonl": records.String()} {
			d, err := x.Extract(t.Context(), name, []byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(d.Text, "\n\n")
			if len(got) != n {
				t.Fatalf("%s: %d paragraphs of %d rows: %q", name, len(got), n, d.Text)
			}
			for i, p := range got {
				end := strings.TrimRight(p, rowClosers)
				if !strings.HasPrefix(p, fmt.Sprintf("k: row %d", i)) || strings.Contains(p, "\n") || !strings.HasSuffix(end, ".") && !strings.HasSuffix(end, "!") {
					t.Fatalf("%s: row %d is %q", name, i, p)
				}
			}
		}
	})
}

// The readers that keep count of lines are the ones that read: Outdated knows all others.
func TestOutdated(t *testing.T) {
	x := newExtractor(t, Config{})
	for name, raw := range map[string]string{"a.txt": "words", "a.md": "# Words", "a.csv": "a,b\n1,2\n", "a.json": `{"a": 1}`, "a.jsonl": "{\"a\": 1}\n{\"a\": 2}\n"} {
		d, err := x.Extract(t.Context(), name, []byte(raw))
		if err != nil || !HasLines(d.MediaType) || Outdated(d.Extractor) {
			t.Errorf("%s is read by %s, %v", name, d.Extractor, err)
		}
	}
	if !Outdated("markdown/2") || Outdated("html/1") || Outdated("") {
		t.Error("an earlier reader of Markdown alone is outdated here")
	}
}
