package verify

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// This part draws the numbers of a database. A chart is what the stored rows make, and nothing else: the gate cuts it
// out of them, and Check cuts it again.

const (
	ofDatabase = "database" // the source of a citation of rows
	fewestRows = 3          // of a chart
	mostRows   = 24
	maxLabel   = 60 // characters
)

var (
	// rowOfTwo is a row with two columns, one of which may be a number. What could be read in two ways is none.
	rowOfTwo    = regexp.MustCompile(`^([^:;]+): ([^;]+); ([^:;]+): ([^;]+)\.$`)
	plainNumber = regexp.MustCompile(`^-?\d{1,15}(?:\.\d{1,15})?$`)
	moment      = regexp.MustCompile(`^(?:1[5-9]|20)\d\d(?:-\d\d(?:-\d\d(?:[T ].*)?)?)?$`)
)

// charts puts a chart after the first block that rests on rows of a label and a number each.
func (g *gate) charts() error {
	if !g.Charts || Earlier(g.Rules) {
		return nil
	}
	var out []marchwarden.Block
	drawn := map[int]bool{}
	for _, b := range g.out.Blocks {
		out = append(out, b)
		for _, n := range citedBy([]marchwarden.Block{b}) {
			src := g.set.Sources()[g.out.Sources[n-1]-1]
			if drawn[src.N] || src.Page.Source != ofDatabase || src.Page.Unchecked {
				continue
			}
			drawn[src.N] = true
			text, err := g.text(src)
			if err != nil {
				return err
			}
			if c := chartOf(text); c != nil {
				c.Citation = n
				out = append(out, *c)
			}
		}
	}
	g.out.Blocks = out
	return nil
}

// chartOf is the chart that the stored rows of a statement make, or nil.
func chartOf(text string) *marchwarden.Block {
	_, body, _ := strings.Cut(text, "\n\n")
	body, _, stated := strings.Cut(body, "\n# Statement: ")
	body = strings.TrimRight(body, "\n")
	rows := strings.Split(body[strings.LastIndex("\n\n"+body, "\n\n"):], "\n") // what they mean may stand before them
	if !stated || len(rows) < fewestRows || len(rows) > mostRows {
		return nil
	}
	var names [2]string
	var cells [2][]string
	for i, row := range rows {
		m := rowOfTwo.FindStringSubmatch(row)
		if m == nil || i > 0 && names != [2]string{m[1], m[3]} {
			return nil
		}
		names = [2]string{m[1], m[3]}
		cells[0], cells[1] = append(cells[0], plainSentence(m[2])), append(cells[1], plainSentence(m[4]))
	}
	for k, labels := range cells {
		values, dated := numbersIn(cells[1-k]), every(labels, moment.MatchString)
		if values == nil || !areLabels(labels) || !dated && slices.ContainsFunc(labels, plainNumber.MatchString) {
			continue
		}
		kind := "bar"
		if dated && slices.IsSorted(labels) {
			kind = "line"
		}
		return &marchwarden.Block{Type: marchwarden.Chart, Kind: kind, Series: []marchwarden.Series{{Name: clip(plainSentence(names[1-k])), Labels: labels, Values: values}}}
	}
	return nil
}

func every(all []string, is func(string) bool) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !is(s) })
}

func numbersIn(cells []string) []float64 {
	var out []float64
	for _, c := range cells {
		v, err := strconv.ParseFloat(c, 64)
		if err != nil || !plainNumber.MatchString(c) {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// areLabels reports texts that tell numbers from each other.
func areLabels(all []string) bool {
	seen := map[string]bool{}
	return every(all, func(s string) bool {
		fresh := s != "" && utf8.RuneCountInString(s) <= maxLabel && !seen[s]
		seen[s] = true
		return fresh
	})
}

// chart makes the chart again out of the rows that it cites.
func (c *checker) chart(b marchwarden.Block) string {
	if b.Citation < 1 || c.res.Citations[b.Citation-1].Source != ofDatabase {
		return "it cites no rows of a database"
	}
	text, err := c.text(c.res.Citations[b.Citation-1].ContentHash)
	if err != nil {
		return err.Error()
	}
	made := chartOf(text)
	if made == nil {
		return fmt.Sprintf("citation %d has no rows of a label and a number", b.Citation)
	}
	if made.Citation = b.Citation; !reflect.DeepEqual(*made, b) {
		return fmt.Sprintf("its labels and numbers are not the rows of citation %d", b.Citation)
	}
	return ""
}

// Figures is a chart as a table.
func Figures(b marchwarden.Block) (table marchwarden.Block) {
	table = marchwarden.Block{Type: marchwarden.TableBlock, Columns: []string{""}}
	at := map[string]int{}
	for i, s := range b.Series {
		table.Columns = append(table.Columns, s.Name)
		for j, label := range s.Labels[:min(len(s.Labels), len(s.Values))] {
			if _, ok := at[label]; !ok {
				at[label] = len(table.Rows)
				row := make([]marchwarden.Cell, 1+len(b.Series))
				if row[0].Text = label; b.Citation > 0 {
					row[0].Citations = []int{b.Citation}
				}
				table.Rows = append(table.Rows, row)
			}
			table.Rows[at[label]][i+1].Text = Figure(s.Values[j])
		}
	}
	return table
}

// Figure is a number as it is written.
func Figure(v float64) string {
	if math.Abs(v) >= 1e15 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
