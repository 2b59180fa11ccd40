package extract

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxCSS       = 512 << 10 // bytes of style sheets that are read, of each page
	maxRules     = 4000      // rules that are kept
	maxCandidate = 64        // rules that are tried for one name of an element
	maxNames     = 32        // names of one element that are looked at
)

// sheet is the part of a page's style sheets that can hide text. The zero value is a page without any.
type sheet struct {
	size, count int
	rules       map[string][]rule // by the last name of the selected element
	around      map[string]int    // how many of the elements that are open have a name
}

// rule is one selector with its declarations. In which order the elements around the selected one stand does not count.
type rule struct {
	around, names []string // that elements around the selected one, and it itself, must have, such as "p", ".note" and "#top"
	strength      int
	order         int
	body          style
}

// namesOf are the names by which selectors know an element.
func namesOf(tag string, attrs []html.Attribute) []string {
	names := []string{"*", tag}
	for _, a := range attrs {
		switch a.Key {
		case "id":
			names = append(names, "#"+a.Val)
		case "class":
			for class := range strings.FieldsSeq(a.Val) {
				names = append(names, "."+class)
			}
		}
	}
	return names[:min(len(names), maxNames)]
}

// counted are the properties that are looked at, without the prefix of a browser.
var counted = strings.Fields("display visibility opacity font-size color background background-color background-clip position left top right bottom " +
	"text-indent margin-left margin-top overflow height max-height width max-width transform transition animation animation-name will-change")

var (
	notRules    = regexp.MustCompile(`(?s)/\*.*?(?:\*/|$)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`) // comments and strings
	plainSelect = regexp.MustCompile(`^[A-Za-z0-9_\-.#*> \t\n\r\x{80}-\x{10FFFF}]+$`)
	namePart    = regexp.MustCompile(`[.#]?[^.#*]+|\*`)
)

// properties reads "name: value; name: value" and keeps what counts.
func properties(src string) style {
	v := make(style)
	for d := range strings.SplitSeq(strings.ToLower(src), ";") {
		name, value, ok := strings.Cut(d, ":")
		name = strings.TrimPrefix(strings.TrimSpace(name), "-webkit-")
		if !ok || !slices.Contains(counted, name) {
			continue
		}
		value, _, _ = strings.Cut(value, "!") // what is important counts like the rest
		v[name] = strings.TrimSpace(value)
	}
	return v
}

// Add reads a style sheet. What it does not know, and what holds under conditions only, it leaves out. Later rules win over earlier ones as in a browser.
func (s *sheet) Add(css string) {
	if s.size += len(css); s.size > maxCSS {
		return
	}
	if s.rules == nil {
		s.rules, s.around = make(map[string][]rule), make(map[string]int)
	}
	s.read(notRules.ReplaceAllString(css, " "), 0)
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

// blockEnd finds the brace that closes a block.
func blockEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
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
		words := strings.Fields(strings.ReplaceAll(selector, ">", " "))
		if len(words) == 0 || !plainSelect.MatchString(selector) {
			continue
		}
		r := rule{order: s.count, body: found, strength: 10_000*strings.Count(selector, "#") + 100*strings.Count(selector, ".") + len(words)}
		for i, word := range words {
			for _, name := range namePart.FindAllString(word, -1) {
				if name[0] != '.' && name[0] != '#' {
					name = strings.ToLower(name)
				}
				if i < len(words)-1 {
					r.around = append(r.around, name)
				} else {
					r.names = append(r.names, name)
				}
			}
		}
		if key := len(r.names) - 1; key >= 0 {
			s.count++
			s.rules[r.names[key]] = append(s.rules[r.names[key]], r)
		}
	}
}

// enter notes that an element with these names is open, by 1, or was closed, by -1.
func (s *sheet) enter(names []string, by int) {
	if len(s.rules) == 0 {
		return
	}
	for _, name := range names {
		s.around[name] += by
	}
}

// style computes what holds for an element: its own style over rules, stronger rules over weaker, and later over earlier.
func (s *sheet) style(names []string, inline string) style {
	var found []rule
	for _, name := range names {
		rules := s.rules[name]
		for _, r := range rules[max(0, len(rules)-maxCandidate):] {
			lacks := slices.ContainsFunc(r.names, func(name string) bool { return !slices.Contains(names, name) })
			if !lacks && !slices.ContainsFunc(r.around, func(name string) bool { return s.around[name] == 0 }) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b rule) int { return cmp.Or(a.strength-b.strength, a.order-b.order) })
	v := make(style)
	for _, r := range found {
		maps.Copy(v, r.body)
	}
	maps.Copy(v, properties(notRules.ReplaceAllString(inline, "")))
	return v
}
