package term

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

const tableGap = 2

// Count writes a number with a comma between thousands: 1,830.
func Count(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Duration writes a duration for people: 3.2 ms, 0.18 s, 12.4 s, 2 min 5 s,
// 1 h 2 min. A negative duration is written as 0 s.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < 10*time.Millisecond-50*time.Microsecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second-5*time.Millisecond:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		s := int(d.Round(time.Second) / time.Second)
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	m := int(d.Round(time.Minute) / time.Minute)
	return fmt.Sprintf("%s h %d min", Count(m/60), m%60)
}

// Bytes writes a size in decimal units: 812 B, 4.1 kB, 2.0 MB.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n), ""
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		v, unit = v/1000, u
		if v < 999.95 {
			break
		}
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
}

// Seconds writes a number of seconds from outside as a duration, kept in range.
func Seconds(s float64) string {
	if math.IsNaN(s) || s <= 0 {
		s = 0
	}
	return Duration(time.Duration(min(s, 1e9) * float64(time.Second)))
}

// Plural writes a count and its noun, which takes an s: 1 source, 7 sources.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Width is the cells that clean one-line text takes.
func Width(s string) int { return uniseg.StringWidth(s) }

// Truncate shortens clean one-line text to a number of cells, with an ellipsis
// where it was cut.
func Truncate(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if uniseg.StringWidth(s) <= width {
		return s
	}
	used, end, state := 0, 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		used += w
		end += len(cluster)
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// Pad fills clean text with spaces to a number of cells, on its left or right.
func Pad(s string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-uniseg.StringWidth(s)))
	if left {
		return fill + s
	}
	return s + fill
}

// Table writes rows under a head in columns aligned by cell width, two spaces
// apart; a column of numbers is aligned to the right. Cells are cleaned to one
// line and rows may be short. On a terminal (Width > 0) the widest columns are cut so
// that it fits; elsewhere nothing is cut. It returns the error of the one write.
func (st Style) Table(w io.Writer, head []string, rows [][]string) error {
	grid := make([][]string, 0, len(rows)+1)
	columns := len(head)
	for _, row := range append([][]string{head}, rows...) {
		clean := make([]string, len(row))
		for i, c := range row {
			clean[i] = CleanLine(c)
		}
		grid = append(grid, clean)
		columns = max(columns, len(row))
	}
	widths, numbers := measure(grid, columns)
	if st.Width > 0 {
		narrow(widths, st.Width)
	}
	var b strings.Builder
	for r, row := range grid {
		line := st.tableRow(row, widths, numbers)
		if r == 0 {
			line = st.Paint(Bold, line)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func measure(grid [][]string, columns int) (widths []int, numbers []bool) {
	widths, numbers = make([]int, columns), make([]bool, columns)
	for i := range columns {
		filled := false
		numbers[i] = true
		for r, row := range grid {
			if i >= len(row) {
				continue
			}
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
			if r > 0 && row[i] != "" {
				filled = true
				numbers[i] = numbers[i] && isNumber(row[i])
			}
		}
		numbers[i] = numbers[i] && filled
	}
	return widths, numbers
}

func (st Style) tableRow(row []string, widths []int, numbers []bool) string {
	var b strings.Builder
	for i, c := range row {
		if st.Width > 0 {
			c = Fit(c, widths[i])
		}
		b.WriteString(Pad(c, widths[i], numbers[i]))
		b.WriteString(strings.Repeat(" ", tableGap))
	}
	return strings.TrimRight(b.String(), " ")
}

// narrow takes from the widest columns what there is no room for, and reports whether the rest fits:
// none is narrower than it must be for a word.
func narrow(widths []int, room int) bool {
	const least = 8
	total := tableGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > room && slices.Max(widths) > least; total-- {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	return total <= room
}

// isNumber accepts what this package writes as a number, with its unit.
func isNumber(s string) bool {
	number, unit, _ := strings.Cut(s, " ")
	if !slices.Contains([]string{"", "s", "ms", "B", "kB", "MB", "GB", "TB"}, unit) {
		return false
	}
	number = strings.TrimSuffix(strings.TrimLeft(number, "-$€"), "%")
	return strings.Trim(number, "0123456789.,") == "" && strings.ContainsAny(number, "0123456789")
}
