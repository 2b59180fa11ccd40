package extract

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

const (
	maxCSS       = 512 << 10 // bytes of style sheets that are read, of each page
	maxRules     = 4000      // rules that are kept
	maxCandidate = 64        // rules that are tried for one name of an element
)

// sheet is the part of a page's style sheets that can hide text. The zero value is a page without any.
type sheet struct {
	size, count int
	rules       map[string][]rule // by what the selected element must have: ".class", "#id", "tag" or "*"
}

// rule is one selector with its declarations.
type rule struct {
	path     []compound // from the outermost element to the selected one
	strength int
	order    int
	body     []property
}

// compound is what one element must have.
type compound struct {
	tag, id string
	classes []string
	child   bool // it stands directly below the one before it
}

type property struct {
	name, value string
	important   bool
}

// styled is what selectors ask of an element.
type styled struct {
	tag, id string
	classes []string
	inline  string
}

func styledOf(tag string, attrs []html.Attribute) styled {
	e := styled{tag: tag}
	for _, a := range attrs {
		switch a.Key {
		case "id":
			e.id = a.Val
		case "class":
			e.classes = strings.Fields(a.Val)
		case "style":
			e.inline = a.Val
		}
	}
	return e
}

// counted are the properties that are looked at.
var counted = strings.Fields("display visibility content-visibility opacity font font-size color background background-color background-clip " +
	"-webkit-background-clip -webkit-text-fill-color position left top right bottom text-indent margin-left margin-top clip clip-path overflow height max-height " +
	"width max-width transform transition animation animation-name will-change mso-hide")

var (
	comment     = regexp.MustCompile(`(?s)/\*.*?(\*/|$)`)
	escape      = regexp.MustCompile(`\\([0-9A-Fa-f]{1,6})\s?|\\([^\n])`)
	plainSelect = regexp.MustCompile(`^[A-Za-z0-9_\-.#*> \t\n\r\x{80}-\x{10FFFF}]+$`)
	namePart    = regexp.MustCompile(`[.#]?[^.#*]+|\*`)
)

// unescapeCSS resolves the escapes of CSS, with which a word can be disguised.
func unescapeCSS(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escape.ReplaceAllStringFunc(s, func(m string) string {
		if n, err := strconv.ParseUint(strings.TrimSpace(m[1:]), 16, 32); err == nil && n <= utf8.MaxRune {
			return string(rune(n))
		}
		return m[1:]
	})
}

// properties reads "name: value; name: value" and keeps what counts.
func properties(src string) []property {
	var out []property
	for d := range strings.SplitSeq(src, ";") {
		name, value, ok := strings.Cut(d, ":")
		name = strings.ToLower(unescapeCSS(strings.TrimSpace(name)))
		if !ok || !slices.Contains(counted, name) {
			continue
		}
		value = strings.ToLower(unescapeCSS(strings.TrimSpace(value)))
		value, important := strings.CutSuffix(value, "important")
		if important {
			value = strings.TrimRight(value, "! \t\n\r\f")
		}
		out = append(out, property{name, strings.TrimSpace(value), important})
	}
	return out
}

// Add reads a style sheet. What it does not know, and what holds under conditions only, it leaves out. Later rules win over earlier ones as in a browser.
func (s *sheet) Add(css string) {
	if s.size += len(css); s.size > maxCSS {
		return
	}
	if s.rules == nil {
		s.rules = make(map[string][]rule)
	}
	s.read(comment.ReplaceAllString(css, " "), 0)
}

func (s *sheet) read(css string, depth int) {
	for len(css) > 0 && s.count < maxRules {
		i := strings.IndexAny(css, "{;}")
		if i < 0 {
			return
		}
		prelude, rest := strings.TrimSpace(css[:i]), css[i+1:]
		if css[i] != '{' { // "@import …;" or a stray brace
			css = rest
			continue
		}
		end := blockEnd(rest)
		body := rest[:end]
		css = rest[min(end+1, len(rest)):]
		switch {
		case !strings.HasPrefix(prelude, "@"):
			s.rule(prelude, body)
		case depth < 4 && (strings.HasPrefix(prelude, "@layer") || strings.HasPrefix(prelude, "@media") && forScreens(prelude[len("@media"):])):
			s.read(body, depth+1)
		}
	}
}

// blockEnd finds the brace that closes a block; braces in strings do not count.
func blockEnd(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote || c == '\n' {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(s)
}

// forScreens tells whether a media list holds on any screen.
func forScreens(media string) bool {
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || media == "all" || media == "screen" || media == "only screen"
}

func (s *sheet) rule(selectors, body string) {
	found := properties(body)
	if len(found) == 0 {
		return
	}
	for selector := range strings.SplitSeq(selectors, ",") {
		path := parseSelector(strings.TrimSpace(selector))
		if path == nil {
			continue
		}
		r := rule{path: path, order: s.count, body: found}
		for _, c := range path {
			r.strength += 100 * len(c.classes)
			if c.id != "" {
				r.strength += 10_000
			}
			if c.tag != "" {
				r.strength++
			}
		}
		s.count++
		key := path[len(path)-1].key()
		s.rules[key] = append(s.rules[key], r)
	}
}

// parseSelector returns nil for a selector with parts that are not known here.
func parseSelector(src string) []compound {
	src = unescapeCSS(src)
	if src == "" || len(src) > 1000 || !plainSelect.MatchString(src) {
		return nil
	}
	var path []compound
	child := false
	for _, word := range strings.Fields(strings.ReplaceAll(src, ">", " > ")) {
		if word == ">" {
			child = true
			continue
		}
		c := compound{child: child}
		child = false
		for _, part := range namePart.FindAllString(word, -1) {
			switch {
			case part == "*":
			case part[0] == '.':
				c.classes = append(c.classes, part[1:])
			case part[0] == '#':
				c.id = part[1:]
			default:
				c.tag = strings.ToLower(part)
			}
		}
		path = append(path, c)
	}
	return path
}

func (c compound) key() string {
	switch {
	case c.id != "":
		return "#" + c.id
	case len(c.classes) > 0:
		return "." + c.classes[0]
	case c.tag != "":
		return c.tag
	}
	return "*"
}

func (c compound) matches(e styled) bool {
	if c.tag != "" && c.tag != e.tag || c.id != "" && c.id != e.id {
		return false
	}
	return !slices.ContainsFunc(c.classes, func(class string) bool { return !slices.Contains(e.classes, class) })
}

// matches reports whether the rule selects the element at n; without a node only the element itself is asked.
func (r rule) matches(e styled, n *html.Node) bool {
	last := len(r.path) - 1
	if !r.path[last].matches(e) {
		return false
	}
	if n == nil || last == 0 {
		return true
	}
	// The nearest fitting ancestor is taken for each part: enough to find a match of plain descendants, and short of one in contrived mixes with children.
	at := n.Parent
	for i := last - 1; i >= 0; i-- {
		for at != nil && !(at.Type == html.ElementNode && r.path[i].matches(styledOf(at.Data, at.Attr))) {
			if r.path[i+1].child {
				return false
			}
			at = at.Parent
		}
		if at == nil {
			return false
		}
		at = at.Parent
	}
	return true
}

// style computes what holds for an element: its own style over rules, stronger rules over weaker, later over earlier, and what is important over all.
func (s *sheet) style(e styled, n *html.Node) style {
	var found []rule
	if len(s.rules) > 0 {
		keys := []string{"*", e.tag}
		if e.id != "" {
			keys = append(keys, "#"+e.id)
		}
		for _, class := range e.classes[:min(len(e.classes), 32)] {
			keys = append(keys, "."+class)
		}
		for _, key := range keys {
			rules := s.rules[key]
			for _, r := range rules[max(0, len(rules)-maxCandidate):] {
				if r.matches(e, n) {
					found = append(found, r)
				}
			}
		}
		slices.SortFunc(found, func(a, b rule) int { return cmp.Or(a.strength-b.strength, a.order-b.order) })
	}
	if e.inline != "" {
		found = append(found, rule{body: properties(comment.ReplaceAllString(e.inline, " "))})
	}
	if len(found) == 0 {
		return nil
	}
	v := make(style)
	for _, important := range []bool{false, true} {
		for _, r := range found {
			for _, d := range r.body {
				if d.important == important {
					v[d.name] = d.value
				}
			}
		}
	}
	return v
}
