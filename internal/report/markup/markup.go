// Package markup builds HTML in which only literals of the program's source are
// markup: text is escaped wherever it goes, and a link leads to http, https or a place
// of the same page or server. No text from outside can run, load, embed or send anything.
package markup

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// Node is a piece of well-formed HTML. It is a value: it may be used twice and by
// several goroutines. The zero Node is nothing.
type Node struct{ html string }

// String is the node as HTML.
func (n Node) String() string { return n.html }

// Empty reports whether there is nothing in the node.
func (n Node) Empty() bool { return n.html == "" }

// Literal is HTML that stands in the program's source. A constant becomes one by
// itself; a text from outside does not.
type Literal string

// Fill is a literal with its blanks {} filled in their order: a Node goes in as it is, a
// Link as its address, anything else as text. A blank stands between tags or within the
// double quotes of an attribute. Fill panics where the number of values is not that of the
// blanks, and where an address is filled with something else than a Link: both are
// mistakes in the source.
func Fill(form Literal, values ...any) Node {
	parts := strings.Split(string(form), "{}")
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

// If is a filled literal where a condition holds, and else nothing.
func If(holds bool, form Literal, values ...any) Node {
	if !holds {
		return Node{}
	}
	return Fill(form, values...)
}

// Each is what a function makes of every item, one after the other.
func Each[T any](all []T, make func(T) Node) Node {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(make(one).html)
	}
	return Node{b.String()}
}

// Join is nodes one after the other.
func Join(nodes ...Node) Node { return Each(nodes, func(n Node) Node { return n }) }

// Lines is nodes one after the other, each on lines of its own in the source; those
// that are nothing are left out.
func Lines(nodes ...Node) Node {
	return Each(nodes, func(n Node) Node {
		if n.html == "" {
			return n
		}
		return Node{strings.TrimSuffix(n.html, "\n") + "\n"}
	})
}

// Link is where an anchor leads.
type Link struct{ href string }

// Web is the link to an address of the web; false for anything but an http or https
// address that every reader takes for the same one.
func Web(address string) (Link, bool) {
	to, ok := locator.Canonical(address)
	return Link{to}, ok
}

// At is the link to the element with an id on the same page.
func At(id string) Link { return Link{"#" + id} }

// Source leads to a source in the panel of the page that it is on.
func Source(n int) Link { return Link{"?source=" + strconv.Itoa(n) + "#source"} }

// Local is the link to a path of the same server. Anything else leads to its first page.
func Local(path string) Link {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return Link{"/"}
	}
	return Link{path}
}

// Address is where the link leads.
func (l Link) Address() string { return l.href }

// Away is an anchor that leads away: it tells the other side nothing about this page and
// gives it no hold on it.
func Away(to Link, body Node) Node {
	return Fill(`<a href="{}" rel="noopener noreferrer nofollow">{}</a>`, to, body)
}

// escapes are the characters that mean something in HTML. A carriage return is
// written by its number because a reader of HTML would make it a line feed.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\r", "&#13;", "\x00", "\uFFFD")

// Text is a text as it is. What HTML cannot carry, NUL and bytes that are no UTF-8,
// becomes U+FFFD. A text of one line should have passed package plaintext before.
func Text(s string) Node { return Node{escapes.Replace(strings.ToValidUTF8(s, "\uFFFD"))} }

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
		if r == '\n' || r == '\t' || r == ' ' || unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			continue
		}
		b.WriteString(Text(s[from:i]).html)
		from = i + utf8.RuneLen(r)
		b.WriteString(Fill(`<bdi class="hidden-character" title="{}">{}</bdi>`, fmt.Sprintf("U+%04X", r), s[i:from]).html)
	}
	b.WriteString(Text(s[from:]).html)
	return Node{b.String()}
}

// Document is a whole page. Its style sheet and its script, "" for none, are the
// program's own: they must not hold text from outside, nor what ends them in HTML.
type Document struct {
	Title         string // one line
	Style, Script string
	Body          Node
}

// Policy is the content security policy of the page: the style sheet and the script,
// each known by its hash, and nothing else. The page can load, frame and send nothing,
// and run no other script.
func (d Document) Policy() string {
	script := ""
	if d.Script != "" {
		script = "script-src " + hashed(d.Script) + "; "
	}
	return "default-src 'none'; " + script + "style-src " + hashed(d.Style) + "; base-uri 'none'; form-action 'none'"
}

// hashed is a source by which a policy allows a text between two tags.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(unixLines(text)))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// unixLines makes the line ends of a text what a reader of HTML makes of them.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// String is the page as one file of HTML, with its policy inside.
func (d Document) String() string {
	script := If(d.Script != "", "<script>{}</script>\n", Node{unixLines(d.Script)})
	return Fill(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<style>{}</style>
</head>
<body>
{}{}</body>
</html>
`, Node{d.Policy()}, d.Title, Node{unixLines(d.Style)}, d.Body, script).html
}
