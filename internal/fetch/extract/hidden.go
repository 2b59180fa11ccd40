package extract

// This part tells which parts of an HTML page a reader does not see, and takes them out of its tree: unseen text must not be quoted, and is a favourite
// place for words meant for machines.
//
// It knows the hidden attribute, closed dialogs and popovers, templates, notes inside formulas, comments, aria-hidden, and the style of an element as far as its own style attribute and the
// page's own style elements give it: display, visibility, opacity, tiny or transparent letters, letters in the colour of their ground, boxes off the screen or
// of no size. It fetches no style sheets and runs no scripts, and does not know sibling selectors, attribute selectors, pseudo classes or media conditions: a page that
// is determined to hide a text from its readers and show it here can do so, and callers must go on treating all text as hostile.
//
// It also knows the characters that show nothing, in text of any format: see visible and withoutJoiners.

import (
	"cmp"
	"fmt"
	"regexp"
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
	if size := v["font-size"]; size != "" && size != "inherit" {
		in.tiny = tiny(size, in.tiny)
	}
	if v["color"] != "" {
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
		default:
			names, inside := namesOf(c.Data, c.Attr), in
			if !exempt(c.Data) {
				v := s.style(names, attr(c, "style"))
				if !spokenMath(c) && (byAttributes(c.Data, c.Attr) || v.boxUnseen(c.Attr)) {
					n.RemoveChild(c)
					continue
				}
				inside = in.with(v)
			}
			s.enter(names, 1)
			s.remove(c, inside)
			s.enter(names, -1)
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

// Hides reports whether an element with these attributes is not seen, for readers that have no tree: rules for what stands inside other elements do not count, and what
// the element passes on is taken for all that is in it. It is safe for concurrent use as long as Add is not called.
func (s *sheet) Hides(tag string, attrs []html.Attribute) bool {
	if exempt(tag) {
		return false
	}
	v := s.style(namesOf(tag, attrs), attrOf(attrs, "style"))
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
	return v["display"] == "none" || given && opacity <= 0.01 && !v.entrance(attrs) || v.offScreen() || v.noSize()
}

// entrance tells elements that are shown with an effect when the page is read.
func (v style) entrance(attrs []html.Attribute) bool {
	for _, p := range []string{"transform", "transition", "animation", "animation-name", "will-change"} {
		if v[p] != "" && v[p] != "none" {
			return true
		}
	}
	return slices.ContainsFunc(attrs, func(a html.Attribute) bool {
		return a.Key == "data-w-id" || strings.HasPrefix(a.Key, "data-aos") || strings.HasPrefix(a.Key, "data-framer")
	})
}

// tinySizes are the sizes of letters, by unit, that are too small to be seen.
var tinySizes = map[string]float64{"": 2, "px": 2, "pt": 2, "em": 0.1, "rem": 0.1, "%": 10}

// tiny reports letters that are too small to be seen. A share of a tiny size is tiny.
func tiny(size string, around bool) bool {
	n, unit, ok := length(size)
	return ok && (n == 0 || n < tinySizes[unit] || around && (unit == "em" || unit == "%"))
}

// colourless tells letters without a colour of their own. A gradient that shows through the letters is one.
func (v style) colourless() bool {
	colour, ground := plainColour(v["color"]), cmp.Or(plainColour(v["background-color"]), plainColour(v["background"]))
	return v["background-clip"] != "text" && (transparent.MatchString(colour) || colour != "" && colour == ground)
}

// transparent are colours that let all of the ground through.
var transparent = regexp.MustCompile(`^(?:transparent|#...0|#.{6}00|(?:rgb|hsl)a\(.*,0?\.?0*%?\))$`)

var colourNames = map[string]string{"white": "#ffffff", "black": "#000000"}

// plainColour brings the ways to write a colour to one, as far as they are used to hide.
func plainColour(s string) string {
	s = strings.ReplaceAll(s, " ", "")
	var r, g, b uint8
	if n, _ := fmt.Sscanf(s, "rgb(%d,%d,%d)", &r, &g, &b); n == 3 {
		return fmt.Sprintf("#%02x%02x%02x", r, g, b)
	}
	if len(s) == 4 && s[0] == '#' {
		return "#" + strings.Repeat(s[1:2], 2) + strings.Repeat(s[2:3], 2) + strings.Repeat(s[3:], 2)
	}
	return cmp.Or(colourNames[s], s)
}

// farAway are distances to the left or top, by unit, that no screen shows.
var farAway = map[string]float64{"px": -500, "pt": -500, "em": -50, "rem": -50, "%": -100, "vw": -100, "vh": -100}

func (v style) offScreen() bool {
	moved := []string{"text-indent", "margin-left", "margin-top"}
	if slices.Contains([]string{"absolute", "fixed", "relative"}, v["position"]) {
		moved = append(moved, "left", "top", "right", "bottom")
	}
	return slices.ContainsFunc(moved, func(p string) bool {
		n, unit, ok := length(v[p])
		limit, known := farAway[unit]
		return ok && known && n <= limit
	})
}

// noSize tells boxes that show nothing of what is in them.
func (v style) noSize() bool {
	if o := v["overflow"]; o != "hidden" && o != "clip" {
		return false
	}
	return slices.ContainsFunc([]string{"height", "max-height", "width", "max-width"}, func(p string) bool {
		n, unit, ok := length(v[p])
		return ok && (n == 0 || unit == "px" && n <= 1)
	})
}

// length splits "-9999px" into number and unit.
func length(s string) (n float64, unit string, ok bool) {
	unit = strings.TrimLeft(s, "0123456789.+-")
	n, err := strconv.ParseFloat(s[:len(s)-len(unit)], 64)
	return n, unit, err == nil
}
