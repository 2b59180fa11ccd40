package markup

import (
	"fmt"
	"strings"
)

// Literal is HTML that stands in the program's source. A constant becomes one by
// itself; a text from outside does not.
type Literal string

// blank is what Fill replaces in a literal.
const blank = "{}"

// Fill is a literal with its blanks {} filled in their order: a Node goes in as it is, a
// Link as its address, anything else as text. A blank stands between tags or within the
// double quotes of an attribute. Fill panics where the number of values is not that of the
// blanks, and where an address is filled with something else than a Link: both are
// mistakes in the source.
func Fill(form Literal, values ...any) Node {
	parts := strings.Split(string(form), blank)
	if len(parts) != len(values)+1 {
		panic(fmt.Sprintf("markup: %d values for %d blanks in %s", len(values), len(parts)-1, form))
	}
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(values) {
			b.WriteString(filled(part, values[i]))
		}
	}
	return Node{b.String()}
}

// filled is a value as it stands behind a part of a literal.
func filled(before string, value any) string {
	link, isLink := value.(Link)
	for _, address := range []string{`href="`, `src="`, `action="`} {
		if strings.HasSuffix(before, address) && !isLink {
			panic(fmt.Sprintf("markup: %s is filled with %T, want a Link", address, value))
		}
	}
	if isLink {
		return Text(link.href).html
	}
	if n, ok := value.(Node); ok {
		return n.html
	}
	return Text(fmt.Sprint(value)).html
}

// Each is what a function makes of every item, one after the other.
func Each[T any](all []T, make func(T) Node) Node {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(make(one).html)
	}
	return Node{b.String()}
}

// If is a filled literal where a condition holds, and else nothing.
func If(holds bool, form Literal, values ...any) Node {
	if !holds {
		return Node{}
	}
	return Fill(form, values...)
}
