package term

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rivo/uniseg"
)

// glass is a terminal as far as progress needs one: it moves, erases, scrolls, wraps,
// and gets another size. A code that it does not
// know is a fault, and so is a line that does not fit.
type glass struct {
	mu            sync.Mutex // guards all below: progress draws when its time has come
	width, height int
	rows          []row
	row, col      int
	history       []string // rows that were scrolled off
	clips         bool     // lines are cut at the edge
	held          bool     // a frame is being written
	writes        int
	fault         string
}

// row is one line of the screen.
type row struct {
	cells   []string
	wrapped bool // it goes on in the next
}

func (r row) String() string { return strings.TrimRight(strings.Join(r.cells, ""), " ") }

func newGlass(width, height int) *glass {
	return &glass{width: width, height: height, rows: make([]row, height)}
}

var codePattern = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

func (g *glass) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	for s := string(b); s != ""; {
		if m := codePattern.FindStringSubmatch(s); m != nil {
			g.code(m[1], m[2])
			s = s[len(m[0]):]
			continue
		}
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
		s = rest
		switch {
		case cluster == "\r":
			g.col = 0
		case cluster == "\n" || cluster == "\r\n":
			g.col = 0
			g.down()
		case cluster < " ":
			g.fault = fmt.Sprintf("the control character %q", cluster)
		default:
			g.put(cluster, width)
		}
	}
	if g.held {
		g.fault = "a frame is not shown"
	}
	return len(b), nil
}

func (g *glass) code(parameter, final string) {
	line := &g.rows[g.row]
	switch parameter + final {
	case "?2026h":
		g.held = true
	case "?2026l":
		g.held = false
	case "?7l":
		g.clips = true
	case "?7h":
		g.clips = false
	case "K":
		line.cells, line.wrapped = line.cells[:min(g.col, len(line.cells))], false
	case "J":
		g.code("", "K")
		for i := g.row + 1; i < g.height; i++ {
			g.rows[i] = row{}
		}
	default:
		n, err := strconv.Atoi(parameter)
		switch {
		case final == "m":
		case final == "A" && err == nil && n > 0:
			if n > g.row {
				g.fault = fmt.Sprintf("%d up from row %d", n, g.row)
			}
			g.row = max(0, g.row-n)
		default:
			g.fault = "the code " + parameter + final
		}
	}
}

func (g *glass) down() {
	if g.row++; g.row == g.height {
		g.history = append(g.history, g.rows[0].String())
		g.rows = append(g.rows[1:], row{})
		g.row--
	}
}

func (g *glass) put(cluster string, width int) {
	if g.col+width > g.width {
		g.fault = "a line does not fit"
		if g.clips {
			return
		}
		g.rows[g.row].wrapped = true
		g.col = 0
		g.down()
	}
	cells := g.rows[g.row].cells
	for len(cells) < g.col+width {
		cells = append(cells, " ")
	}
	cells[g.col] = cluster
	for i := 1; i < width; i++ {
		cells[g.col+i] = ""
	}
	g.rows[g.row].cells = cells
	g.col += width
}

// resize gives the terminal another size, and wraps long lines anew.
func (g *glass) resize(width, height int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rows, at, col := []row{}, 0, g.col
	for i := 0; i < len(g.rows); i++ {
		if i == g.row {
			at = len(rows)
		}
		cells := g.rows[i].cells
		first := len(rows)
		for len(cells) > width {
			cut := width
			for cut > 1 && cells[cut] == "" { // not through a wide character
				cut--
			}
			rows, cells = append(rows, row{cells[:cut:cut], true}), cells[cut:]
		}
		rows = append(rows, row{cells: cells})
		if i == g.row {
			at, col = first+col/width, col%width
		}
	}
	last := len(rows) - 1
	for last > at && len(rows[last].cells) == 0 {
		last--
	}
	// What does not fit is scrolled off, as long as the cursor stays.
	for off := min(max(0, last+1-height), at); off > 0; off-- {
		g.history = append(g.history, rows[0].String())
		rows, at = rows[1:], at-1
	}
	for len(rows) < height {
		rows = append(rows, row{})
	}
	g.width, g.height, g.rows, g.row, g.col = width, height, rows[:height], at, min(col, width-1)
}

// screen is what stands there, without the empty end.
func (g *glass) screen() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var lines []string
	for _, r := range g.rows {
		lines = append(lines, r.String())
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// wrong is what went wrong, and wrote how many writes there were.
func (g *glass) wrong() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

func (g *glass) wrote() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}
