package bert

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

//go:embed tables.txt
var tablesFile string

// What each table holds is said in the file.
var (
	tables  = readTables(tablesFile)
	formats = tables["formats"]
	marks   = tables["marks"]
	points  = tables["points"]
)

// readTables reads ranges of characters in rising order. The file is part of the program:
// one that cannot be read is a panic.
func readTables(file string) map[string]*unicode.RangeTable {
	all := map[string]*unicode.RangeTable{}
	var table *unicode.RangeTable
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if name, ok := strings.CutSuffix(field, ":"); ok {
				table = &unicode.RangeTable{}
				all[name] = table
				continue
			}
			first, last, found := strings.Cut(field, "-")
			if !found {
				last = first
			}
			low, errLow := strconv.ParseUint(first, 16, 32)
			high, errHigh := strconv.ParseUint(last, 16, 32)
			if errLow != nil || errHigh != nil {
				panic(fmt.Sprintf("%q is no range of characters", field))
			}
			if high <= 0xFFFF {
				table.R16 = append(table.R16, unicode.Range16{Lo: uint16(low), Hi: uint16(high), Stride: 1})
			} else {
				table.R32 = append(table.R32, unicode.Range32{Lo: uint32(low), Hi: uint32(high), Stride: 1})
			}
		}
	}
	return all
}
