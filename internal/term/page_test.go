package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func grid(st Style, rows ...[]string) string {
	p := st.NewPage()
	p.Cited = 3
	var runs [][]Run
	for _, row := range rows {
		var cells []Run
		for _, c := range row {
			cells = append(cells, Run{c, Plain})
		}
		runs = append(runs, cells)
	}
	p.Grid(runs)
	return p.b.String()
}

func TestGrid(t *testing.T) {
	for _, tc := range []struct {
		name string
		rows [][]string
		want string
	}{
		{"fits", [][]string{{"a", "b"}, {"1", "x [1]"}, {"漢字", "y"}}, "a     b\n────  ─────\n1     x [1]\n漢字  y\n"},
		{"wrapped, its markers with their words", [][]string{{"Grain", "Yield"}, {"Rye", strings.Repeat("x ", 20) + "ends here [1][2]"}, {"Oats", ""}},
			"Grain  Yield\n─────  ─────────────────────────────────\nRye    x x x x x x x x x x x x x x x x x\n       x x x ends here [1][2]\nOats\n"},
		{"too many columns", [][]string{{"a", "b", "c", "d", "e"}, {"1 one", strings.Repeat("two ", 5), "three three", "four four", "five five"}},
			"• a: 1 one\n  b: two two two two two\n  c: three three\n  d: four four\n  e: five five\n"},
		{"hostile", [][]string{{"a\x1b[31m", "\u202eb"}, {"\x1b]0;t\a1", "2\n3\t4"}}, "a  b\n─  ────\n1  2\n   3 4\n"},
	} {
		if diff := cmp.Diff(tc.want, grid(Style{Width: 40}, tc.rows...)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if got := grid(Style{Width: 80, Color: true}, []string{"a"}, []string{"A. [1] B. [4]"}); !strings.Contains(got, "A. \x1b[36m[1]\x1b[0m B. [4]\n") {
		t.Errorf("markers are not tinted: %q", got)
	}
}

// No line of a grid is wider than its page, and colour adds no words.
func TestGridProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 9).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab .-[]1漢é🌽\x1b")), 0, 60, -1), columns, columns), 1, 5).Draw(t, "rows")
		got := grid(Style{Width: 60}, rows...)
		for l := range strings.Lines(got) {
			if n := uniseg.StringWidth(strings.TrimSuffix(l, "\n")); n > 60 || strings.HasSuffix(l, " \n") {
				t.Fatalf("a line of %d cells: %q", n, l)
			}
		}
		if stripSGR(grid(Style{Width: 60, Color: true}, rows...)) != got || firstControl(got) >= 0 {
			t.Fatalf("colour changes %q", got)
		}
	})
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
