package term

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
)

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1830: "-1,830", -100: "-100", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 3200 * time.Microsecond: "3.2 ms", 9960 * time.Microsecond: "0.01 s", 183 * time.Millisecond: "0.18 s",
		9996 * time.Millisecond: "10.0 s", 12400 * time.Millisecond: "12.4 s", 59960 * time.Millisecond: "1 min 0 s", 125 * time.Second: "2 min 5 s",
		3599600 * time.Millisecond: "1 h 0 min", 62 * time.Minute: "1 h 2 min",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 4096: "4.1 kB", 999_960: "1.0 MB", 2_000_000: "2.0 MB", math.MaxInt64: "9223372.0 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"a bcd", 3, "a…"}, {"漢字漢字", 5, "漢字…"}, {"漢字漢字", 6, "漢字…"}, {"cafe\u0301s!", 5, "cafe\u0301…"}, {"abc", 0, ""}, {"abc", 1, "…"},
	} {
		if got := Truncate(tc.in, tc.width); got != tc.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", tc.in, tc.width, got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	head := []string{"trace", "tokens", "time", "question"}
	rows := [][]string{
		{"a1", "1,830", "0.18 s", "What are ideal crops for a garden in Utah?"},
		{"東京", "12", "12.4 s", "x\x1b[31m\ny"},
		{"short", ""},
	}
	table := func(st Style) string {
		var b bytes.Buffer
		if err := st.Table(&b, head, rows); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := `trace  tokens    time  question
a1      1,830  0.18 s  What are ideal crops for a garden in Utah?
東京       12  12.4 s  x y
short
`
	if diff := cmp.Diff(want, table(Style{})); diff != "" {
		t.Error(diff)
	}
	cut := table(Style{Width: 40, Color: true})
	if !strings.Contains(cut, "What are ideal…\n") || !strings.HasPrefix(cut, "\x1b[1mtrace") {
		t.Errorf("cut table:\n%s", cut)
	}
	for l := range strings.Lines(stripSGR(cut)) {
		if uniseg.StringWidth(strings.TrimSuffix(l, "\n")) > 40 {
			t.Errorf("line too wide: %q", l)
		}
	}
	if got := table(Style{Width: 10}); !strings.Contains(got, "What…\n") {
		t.Errorf("the last column keeps no room:\n%s", got)
	}
}

func TestDetectNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, f := range []*os.File{f, nil} {
		if got := Detect(f, false, "xterm-256color"); got != (Style{}) {
			t.Errorf("Detect = %+v for no terminal", got)
		}
	}
}

func TestTextWidth(t *testing.T) {
	for width, want := range map[int]int{0: 80, -5: 80, 10: 40, 66: 66, 300: 120} {
		if got := (Style{Width: width}).textWidth(); got != want {
			t.Errorf("width %d: text of %d, want %d", width, got, want)
		}
	}
}
