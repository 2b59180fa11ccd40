package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func drawn(st Style, src string) string {
	p := st.NewPage()
	p.Markdown(src, 3)
	return p.b.String()
}

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"paragraphs", "a\nb\n\nc", "a b\n\nc\n"},
		{"hard break", "a  \nb\\\nc", "a\nb\nc\n"},
		{"heading", "# A *b*\ntext", "# A b\n\ntext\n"},
		{"marker glued", strings.Repeat("word ", 7) + "ends. [1][2]", "word word word word word word word\nends. [1][2]\n"},
		{"definition is no link", "Fact. [1]\n\n[1]: https://evil.example/", "Fact. [1]\n\n[1]: https://evil.example/\n"},
		{"link shown", "[label](https://x.example/) <https://y.example/>", "label (https://x.example/)\nhttps://y.example/\n"},
		{"link by its own name", "[https://x.example/](https://x.example/)", "https://x.example/\n"},
		{"image not loaded", "![a](https://x/)", "[image: a] (https://x/)\n"},
		{"entities and escapes", `a &amp; b \&amp; \*c\* &#27;[31m ?a=1&copy=2`, "a & b &amp; *c* [31m ?a=1&copy=2\n"},
		{"entity of a newline", "a&#10;b", "a b\n"},
		{"code", "`a &amp; b`\n\n```go\nif x {\n\ty()\n}\n```", "`a &amp; b`\n\n    if x {\n        y()\n    }\n"},
		{"code is not wrapped", "    " + strings.Repeat("x ", 30), "    " + strings.TrimSpace(strings.Repeat("x ", 30)) + "\n"},
		{"html shown", "<script>\nx\n</script>\n\na <b>c</b>", "    <script>\n    x\n    </script>\n\na <b>c</b>\n"},
		{"lists", "1. a\n2. b\n   - c\n   -\n\n\n- x\n\n- y", "1. a\n2. b\n   • c\n   •\n\n• x\n\n• y\n"},
		{"list from ten", "10) a\n11) b b b b b b b b b b b b b b b b b b b", "10) a\n11) b b b b b b b b b b b b b b b b b b\n    b\n"},
		{"quote", "> a\n>\n> b\n> > c", "│ a\n│\n│ b\n│\n│ │ c\n"},
		{"rule", "a\n\n---\n\nb", "a\n\n* * *\n\nb\n"},
		{"table", "| a | b |\n|---|---|\n| 1 | x [1] |\n| 漢字 | y |", "a     b\n1     x [1]\n漢字  y\n"},
		{"table too wide", "| a | b |\n|---|---|\n| 1 | " + strings.Repeat("x ", 30) + "|", "• a: 1\n  b: x x x x x x x x x x x x x x x x x x\n  x x x x x x x x x x x x\n"},
		{"long word", strings.Repeat("x", 45), strings.Repeat("x", 40) + "\nxxxxx\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, drawn(Style{Width: 40}, tc.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarkersTinted(t *testing.T) {
	got := drawn(Style{Width: 80, Color: true}, "A. [1] B. [3] C. [4] D. [0]")
	if want := "A. \x1b[36m[1]\x1b[0m B. \x1b[36m[3]\x1b[0m C. [4] D. [0]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarkdownTooLong(t *testing.T) {
	got := drawn(Style{Width: 40}, "# a\x1b[1m [1]\n\nb\n"+strings.Repeat("[a](", maxMarkdown/4))
	if !strings.HasPrefix(got, "# a [1]\n\nb\n[a]([a](") || firstControl(got) >= 0 {
		t.Errorf("got %.60q", got)
	}
}

// Wrapping keeps every character but spaces, in order, and no line is too wide.
func TestWrapProperties(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab.,-/[]12漢字é🌽e\u0301")), 0, 60, -1)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 0, 20).Draw(t, "words")
		first, rest := rapid.IntRange(2, 50).Draw(t, "first"), rapid.IntRange(2, 50).Draw(t, "rest")
		s := strings.Join(words, " ")
		var got strings.Builder
		for i, l := range wrap(cells([]Run{{s, Plain}}, 9), first, rest) {
			limit := rest
			if i == 0 {
				limit = first
			}
			rendered := Style{}.render(l)
			if l.width() > limit {
				t.Fatalf("line %d has %d cells of %d: %q", i, l.width(), limit, rendered)
			}
			if strings.HasSuffix(rendered, " ") {
				t.Fatalf("trailing space: %q", rendered)
			}
			got.WriteString(rendered)
		}
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if squeeze(got.String()) != squeeze(s) {
			t.Fatalf("text changed: %q, want %q", got.String(), s)
		}
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, c := range cleanCases {
		f.Add(c.in)
	}
	f.Add("# a\n- b\n  > c `d` **e** [f](g) ![h](i) <j>\n\n| a | b |\n|---|---|\n| c | d |\n\n1. x\n```\ny\n```\n&#27;")
	f.Fuzz(func(t *testing.T, s string) {
		coloured := drawn(Style{Width: 60, Color: true}, s)
		got := drawn(Style{Width: 60}, s)
		if at := firstControl(got); at >= 0 {
			t.Fatalf("control character at %d: %q", at, got)
		}
		if stripSGR(coloured) != got {
			t.Fatalf("colour changes words: %q and %q", coloured, got)
		}
	})
}

// Runs are cleaned where they become cells, whatever their maker did.
func TestCellsClean(t *testing.T) {
	if got := (Style{}).render(cells([]Run{{"a\x1b[31mb\u202e", Plain}, {"\tc\a", Bold}}, 0)); got != "ab c" {
		t.Errorf("got %q", got)
	}
}

func TestCellsWidth(t *testing.T) {
	if n := line(cells([]Run{{"漢字", Plain}, {" e\u0301", Bold}}, 0)).width(); n != uniseg.StringWidth("漢字 é") {
		t.Errorf("width %d", n)
	}
}
