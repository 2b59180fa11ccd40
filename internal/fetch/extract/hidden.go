package extract

// This part tells which parts of an HTML page a reader does not see, and takes them out of its tree: unseen text must not be quoted, and is a favourite
// place for words meant for machines.
//
// It knows the hidden attribute, closed dialogs and popovers, templates, notes inside formulas, comments, aria-hidden, and the style of an element as far as its own style attribute and the
// page's own style elements give it: display, visibility, opacity, tiny or transparent letters, letters in the colour of their ground, boxes off the screen, clipped or
// of no size. It fetches no style sheets and runs no scripts, and does not know sibling selectors, attribute selectors, pseudo classes or media conditions: a page that
// is determined to hide a text from its readers and show it here can do so, and callers must go on treating all text as hostile.
//
// It also knows the characters that show nothing, in text of any format: see visible and withoutJoiners.

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// removeHidden takes comments and all elements that a reader does not see out of the tree below root. The html and body elements stay, whatever their style: pages hide
// them until a script ran. It is linear in the size of the tree for all but absurd style sheets, which are read in part.
func removeHidden(root *html.Node) {
	var s sheet
	for n := range root.Descendants() {
		if n.DataAtom == atom.Style && n.FirstChild != nil && forScreens(attr(n, "media")) {
			s.Add(n.FirstChild.Data)
		}
	}
	s.remove(root, inherited{})
}

// inherited is what an element passes on to those inside it unless they say otherwise.
type inherited struct{ tiny, colourless, invisible bool }

// with is the state inside an element of style v.
func (in inherited) with(v style) inherited {
	if is := v["visibility"]; is != "" && is != "inherit" {
		in.invisible = is == "hidden" || is == "collapse"
	}
	if v["font-size"] != "" || v["font"] != "" {
		in.tiny = v.tiny(in.tiny)
	}
	if v["color"] != "" || v["-webkit-text-fill-color"] != "" {
		in.colourless = v.colourless()
	}
	return in
}

func (in inherited) unseen() bool { return in.tiny || in.colourless || in.invisible }

func (s *sheet) remove(n *html.Node, in inherited) {
	for _, c := range slices.Collect(n.ChildNodes()) {
		switch {
		case c.Type == html.CommentNode, c.Type == html.TextNode && in.unseen():
			n.RemoveChild(c)
		case c.Type != html.ElementNode:
		case exempt(c.Data):
			s.remove(c, in)
		default:
			v := s.style(styledOf(c.Data, c.Attr), c)
			if !spokenMath(c) && (byAttributes(c.Data, c.Attr) || v.boxUnseen(c.Attr)) {
				n.RemoveChild(c)
			} else {
				s.remove(c, in.with(v))
			}
		}
	}
}

// exempt elements are hidden by pages until a script ran, or hold no text of the page.
func exempt(tag string) bool {
	return slices.Contains([]string{"html", "body", "head", "title", "script", "style", "meta", "link"}, tag)
}

// spokenMath tells the one thing that is hidden for good reason: a formula as MathML, for those who hear the page, beside its picture. Without it the sentence has a hole.
func spokenMath(n *html.Node) bool {
	if n.Data != "mjx-assistive-mml" {
		class := " " + attr(n, "class") + " "
		if !strings.Contains(class, " katex-mathml ") && !strings.Contains(class, " MJX_Assistive_MathML ") && !strings.Contains(class, " mwe-math-mathml-a11y ") {
			return false
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.Data != "math" || c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return false
		}
	}
	return true
}

// Hides reports whether an element with these attributes is not seen, for readers that have no tree. What stands around the element is not known, so a style that
// holds inside certain elements only is taken to hold, and what the element passes on is taken for all that is in it. It is safe for concurrent use as long as Add is not
// called.
func (s *sheet) Hides(tag string, attrs []html.Attribute) bool {
	if exempt(tag) {
		return false
	}
	v := s.style(styledOf(tag, attrs), nil)
	return byAttributes(tag, attrs) || v.boxUnseen(attrs) || inherited{}.with(v).unseen()
}

// byAttributes looks at all but the style.
func byAttributes(tag string, attrs []html.Attribute) bool {
	open := false
	for _, a := range attrs {
		switch a.Key {
		case "hidden":
			return !strings.EqualFold(a.Val, "until-found")
		case "popover":
			return true
		case "open":
			open = true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		}
	}
	return tag == "template" || tag == "dialog" && !open || tag == "annotation" || tag == "annotation-xml"
}

// style holds the properties that count here with the value that wins, in lower case.
type style map[string]string

// boxUnseen judges what holds for an element with all that is in it. What is only faded out and about to be moved in by a script is seen in the end.
func (v style) boxUnseen(attrs []html.Attribute) bool {
	opacity, _, given := length(v["opacity"])
	switch {
	case len(v) == 0:
		return false
	case v["display"] == "none", v["content-visibility"] == "hidden", v["mso-hide"] == "all":
		return true
	case given && opacity <= 0.01 && !v.entrance(attrs):
		return true
	case v.offScreen(), v.clipped():
		return true
	}
	return strings.Contains(v["transform"], "scale(0)") || strings.Contains(v["transform"], "scale(0,")
}

// entrance tells elements that are shown with an effect when the page is read.
func (v style) entrance(attrs []html.Attribute) bool {
	for _, p := range []string{"transform", "transition", "animation", "animation-name", "will-change"} {
		if v[p] != "" && v[p] != "none" {
			return true
		}
	}
	for _, a := range attrs {
		if a.Key == "data-w-id" || strings.HasPrefix(a.Key, "data-aos") || strings.HasPrefix(a.Key, "data-framer") {
			return true
		}
	}
	return false
}

// tiny takes letters below two pixels for invisible. A share of a tiny size is tiny.
func (v style) tiny(around bool) bool {
	size := v["font-size"]
	if font := v["font"]; size == "" {
		for _, f := range strings.Fields(font) { // the first length of the shorthand is the size
			f, _, _ = strings.Cut(f, "/")
			if _, unit, ok := length(f); ok && (unit != "" || f == "0") {
				size = f
				break
			}
		}
	}
	n, unit, ok := length(size)
	switch {
	case !ok:
		return around && (size == "" || size == "inherit" || size == "smaller" || size == "larger")
	case n == 0:
		return true
	case unit == "px" || unit == "pt":
		return n < 2
	case unit == "em" || unit == "%":
		return around || unit == "em" && n < 0.1 || unit == "%" && n < 10
	}
	return unit == "rem" && n < 0.1
}

// colourless tells letters without a colour of their own. A gradient that shows through the letters is one.
func (v style) colourless() bool {
	if v["background-clip"] == "text" || v["-webkit-background-clip"] == "text" {
		return false
	}
	colour := cmp.Or(plainColour(v["-webkit-text-fill-color"]), plainColour(v["color"]))
	ground := cmp.Or(plainColour(v["background-color"]), plainColour(v["background"]))
	return colour == "transparent" || colour != "" && colour == ground
}

var colourNames = map[string]string{"white": "#ffffff", "black": "#000000"}

// plainColour brings the ways to write a colour to one, as far as they are used to hide.
func plainColour(s string) string {
	s = strings.ReplaceAll(s, " ", "")
	if hex, ok := colourNames[s]; ok {
		return hex
	}
	if body, ok := strings.CutPrefix(s, "#"); ok {
		switch {
		case len(body) == 4 && body[3] == '0', len(body) == 8 && body[6:] == "00":
			return "transparent"
		case len(body) == 3:
			return "#" + strings.Repeat(body[:1], 2) + strings.Repeat(body[1:2], 2) + strings.Repeat(body[2:], 2)
		}
		return s
	}
	open := strings.IndexByte(s, '(')
	if open < 0 || !strings.HasPrefix(s, "rgb") && !strings.HasPrefix(s, "hsl") {
		return s
	}
	parts := strings.FieldsFunc(strings.TrimSuffix(s[open+1:], ")"), func(r rune) bool { return r == ',' || r == '/' })
	if len(parts) == 4 {
		if n, _, ok := length(parts[3]); ok && n == 0 {
			return "transparent"
		}
	}
	if len(parts) >= 3 && strings.HasPrefix(s, "rgb") {
		hex := "#"
		for _, p := range parts[:3] {
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || n > 255 {
				return s
			}
			hex += strconv.FormatInt(int64(n/16), 16) + strconv.FormatInt(int64(n%16), 16)
		}
		return hex
	}
	return s
}

// farAway are distances to the left or top, by unit, that no screen shows.
var farAway = map[string]float64{"px": -500, "pt": -500, "em": -50, "rem": -50, "%": -100, "vw": -100, "vh": -100}

func far(value string) bool {
	n, unit, ok := length(value)
	limit, known := farAway[unit]
	return ok && known && n <= limit
}

func (v style) offScreen() bool {
	if far(v["text-indent"]) || far(v["margin-left"]) || far(v["margin-top"]) {
		return true
	}
	if p := v["position"]; p != "absolute" && p != "fixed" && p != "relative" {
		return false
	}
	return far(v["left"]) || far(v["top"]) || far(v["right"]) || far(v["bottom"])
}

// clipped tells boxes cut down to nothing or of no size.
func (v style) clipped() bool {
	if args, ok := strings.CutPrefix(v["clip"], "rect("); ok && v["position"] != "" && v["position"] != "relative" && v["position"] != "static" {
		nothing := true
		for _, p := range strings.FieldsFunc(strings.TrimSuffix(args, ")"), func(r rune) bool { return r == ',' || r == ' ' }) {
			n, _, ok := length(p)
			nothing = nothing && ok && n <= 1
		}
		if nothing {
			return true
		}
	}
	switch strings.ReplaceAll(v["clip-path"], " ", "") {
	case "inset(50%)", "inset(100%)", "circle(0)", "circle(0px)", "circle(0%)", "polygon(00,00,00,00)":
		return true
	}
	if o := v["overflow"]; o != "hidden" && o != "clip" {
		return false
	}
	for _, p := range []string{"height", "max-height", "width", "max-width"} {
		if n, unit, ok := length(v[p]); ok && (n == 0 || unit == "px" && n <= 1) {
			return true
		}
	}
	return false
}

// length splits "-9999px" into number and unit.
func length(s string) (n float64, unit string, ok bool) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && strings.IndexByte("0123456789.+-", s[i]) >= 0 {
		i++
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	return n, s[i:], err == nil
}
