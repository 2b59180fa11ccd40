// Package markup builds HTML in which nothing but this package's own constants can
// be markup. Text is escaped wherever it goes, an element or an attribute that is
// not declared here cannot be written, and a link leads to http, https or a place on
// the page itself. There is no element that runs, loads, embeds or sends anything; a
// page as a whole may have one script, which is the program's own.
//
// It owns elements, attributes, links, text and the skeleton of a page with its
// security policy. What stands on a page is its caller's business.
//
//	markup.go  nodes, elements and attributes
//	fill.go    HTML of the source with blanks that are filled
//	text.go    text, plain and exact
//	page.go    a whole page
package markup

import (
	"net/url"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// Node is a piece of well-formed HTML. It is a value: it may be used twice and by
// several goroutines. The zero Node is nothing.
type Node struct{ html string }

// String is the node as HTML.
func (n Node) String() string { return n.html }

// Len is the length of the node in bytes.
func (n Node) Len() int { return len(n.html) }

// Empty reports whether there is nothing in the node.
func (n Node) Empty() bool { return n.html == "" }

// Tag is the name of an element. There are no others than the ones below.
type Tag struct{ name string }

// The elements.
var (
	Article    = Tag{"article"}
	Bdi        = Tag{"bdi"}
	Blockquote = Tag{"blockquote"}
	Code       = Tag{"code"}
	Dd         = Tag{"dd"}
	Del        = Tag{"del"}
	Details    = Tag{"details"}
	Div        = Tag{"div"}
	Dl         = Tag{"dl"}
	Dt         = Tag{"dt"}
	Em         = Tag{"em"}
	Footer     = Tag{"footer"}
	H1         = Tag{"h1"}
	H2         = Tag{"h2"}
	H3         = Tag{"h3"}
	H4         = Tag{"h4"}
	H5         = Tag{"h5"}
	H6         = Tag{"h6"}
	Header     = Tag{"header"}
	Li         = Tag{"li"}
	Main       = Tag{"main"}
	Mark       = Tag{"mark"}
	Meter      = Tag{"meter"}
	Nav        = Tag{"nav"}
	Ol         = Tag{"ol"}
	P          = Tag{"p"}
	Pre        = Tag{"pre"}
	Section    = Tag{"section"}
	Span       = Tag{"span"}
	Strong     = Tag{"strong"}
	Summary    = Tag{"summary"}
	Table      = Tag{"table"}
	Tbody      = Tag{"tbody"}
	Td         = Tag{"td"}
	Th         = Tag{"th"}
	Thead      = Tag{"thead"}
	Tr         = Tag{"tr"}
	Ul         = Tag{"ul"}

	anchor = Tag{"a"}
)

// Break ends a line within a text, and Rule parts what is before it from what follows.
var (
	Break = Node{"<br>"}
	Rule  = Node{"<hr>"}
)

// Attr is one attribute of an element.
type Attr struct{ name, value string }

// ID names an element for links on the page.
func ID(id string) Attr { return Attr{"id", id} }

// Class is what a style sheet knows the element by.
func Class(names string) Attr { return Attr{"class", names} }

// Label is the name of an element for those who hear the page.
func Label(s string) Attr { return Attr{"aria-label", s} }

// LabelledBy gives an element the text of another one as its name.
func LabelledBy(id string) Attr { return Attr{"aria-labelledby", id} }

// Titled is said about an element when it is pointed at.
func Titled(s string) Attr { return Attr{"title", s} }

// Spoken has a text that a script puts there read out to those who hear the page.
func Spoken() Attr { return Attr{"role", "status"} }

// Foreign marks text of unknown language and direction.
func Foreign() []Attr { return []Attr{{"lang", ""}, {"dir", "auto"}} }

// Value is the value of a Meter, which goes from 0 to 1.
func Value(s string) Attr { return Attr{"value", s} }

// Focusable lets a script or a link move the keyboard's focus to an element that is
// no stop on the way of the tab key.
func Focusable() Attr { return Attr{"tabindex", "-1"} }

// Scrollable makes an element with more text than room a stop of the tab key, so
// that it can be read without a mouse.
func Scrollable() Attr { return Attr{"tabindex", "0"} }

// Group makes one thing with a name of what is in an element.
func Group(name string) []Attr { return []Attr{{"role", "group"}, Label(name)} }

// Start is the number of the first item of an Ol.
func Start(n int) Attr { return Attr{"start", strconv.Itoa(n)} }

// ClaimNumber tells a script which claim an element says.
func ClaimNumber(n int) Attr { return Attr{"data-claim", strconv.Itoa(n)} }

// SourceNumber tells a script to which citation an element leads.
func SourceNumber(n int) Attr { return Attr{"data-source", strconv.Itoa(n)} }

// El is an element with attributes and content.
func El(t Tag, attrs []Attr, kids ...Node) Node {
	var b strings.Builder
	b.WriteByte('<')
	b.WriteString(t.name)
	for _, a := range attrs {
		b.WriteByte(' ')
		b.WriteString(a.name)
		b.WriteString(`="`)
		b.WriteString(Text(a.value).html)
		b.WriteByte('"')
	}
	b.WriteByte('>')
	for _, k := range kids {
		b.WriteString(k.html)
	}
	b.WriteString("</")
	b.WriteString(t.name)
	b.WriteByte('>')
	return Node{b.String()}
}

// In is an element of a class.
func In(t Tag, class string, kids ...Node) Node { return El(t, []Attr{Class(class)}, kids...) }

// Join is nodes one after the other.
func Join(nodes ...Node) Node {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(n.html)
	}
	return Node{b.String()}
}

// Lines is nodes one after the other, each on lines of its own in the source; those
// that are nothing are left out.
func Lines(nodes ...Node) Node {
	var b strings.Builder
	for _, n := range nodes {
		if n.html != "" {
			b.WriteString(strings.TrimSuffix(n.html, "\n"))
			b.WriteByte('\n')
		}
	}
	return Node{b.String()}
}

// Link is where an anchor leads.
type Link struct {
	href    string
	outside bool
}

// Web is the link to an address of the web; false for anything but an http or https
// address that every reader takes for the same one.
func Web(address string) (Link, bool) {
	to, ok := locator.Canonical(address)
	return Link{to, true}, ok
}

// At is the link to the element with an id on the same page.
func At(id string) Link { return Link{"#" + id, false} }

// Again is the link to the same page with a number as its only parameter, at the
// element with an id there.
func Again(parameter string, n int, id string) Link {
	return Link{"?" + url.QueryEscape(parameter) + "=" + strconv.Itoa(n) + "#" + id, false}
}

// Local is the link to a path of the same server. Anything else leads to its first page.
func Local(path string) Link {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return Link{"/", false}
	}
	return Link{path, false}
}

// Address is where the link leads.
func (l Link) Address() string { return l.href }

// A is an anchor. One that leads away tells the other side nothing about this page
// and gives it no hold on it.
func A(to Link, attrs []Attr, kids ...Node) Node {
	all := append([]Attr{{"href", to.href}}, attrs...)
	if to.outside {
		all = append(all, Attr{"rel", "noopener noreferrer nofollow"})
	}
	return El(anchor, all, kids...)
}
