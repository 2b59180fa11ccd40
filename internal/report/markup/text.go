package markup

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the characters that mean something in HTML. A carriage return is
// written by its number because a reader of HTML would make it a line feed.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\r", "&#13;")

// Text is a text as it is. What HTML cannot carry, NUL and bytes that are no UTF-8,
// becomes U+FFFD. A text of one line should have passed package plaintext before.
func Text(s string) Node {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return Node{escapes.Replace(strings.ReplaceAll(s, "\x00", "\uFFFD"))}
}

// Exact is a text to the character, line ends and all, of which nothing is hidden: a
// character without a shape of its own, such as a mark of direction, is enclosed so
// that it acts on nothing around it, and named by its code point in the title of its
// element and, with the style sheet, on the page. The text of the node is s, but
// for what HTML cannot carry (see Text).
func Exact(s string) Node {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	from := 0
	for i, r := range s {
		if shown(r) {
			continue
		}
		b.WriteString(Text(s[from:i]).html)
		from = i + utf8.RuneLen(r)
		code := fmt.Sprintf("U+%04X", r)
		b.WriteString(El(Bdi, []Attr{Class("hidden-character"), Titled(code)}, Text(s[i:from])).html)
	}
	b.WriteString(Text(s[from:]).html)
	return Node{b.String()}
}

// shown reports whether a character can be seen, or is white space of text.
func shown(r rune) bool {
	return r == '\n' || r == '\t' || r == ' ' || unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
