package connector

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Mapping says in config.yaml how a tool is used. The keys:
//
//	tool   its name
//	query  of search: the argument that takes the words
//	id     of fetch: the argument that takes the id of a document
//	hits   of search: "lines", or where the list is and what its fields are called:
//	       results[].{id=key,title,url,text=body}
//	text   of fetch: where the text is, such as page.body
//
// Any other key is an argument of the tool that always has this value.
type Mapping map[string]string

// plan is which tools are used, and how.
type plan struct{ search, fetch tool }

func (p plan) String() string {
	if p.fetch.name == "" {
		return "searched by " + p.search.name
	}
	return "searched by " + p.search.name + ", read by " + p.fetch.name
}

// tool is one tool in use; its name is "" where there is none.
type tool struct {
	name     string
	argument string         // takes the words or the id
	always   map[string]any // further arguments
	lines    bool           // each line of the answer is an id
	list     string         // where the list of hits is; "" is looked for
	fields   map[string]string
	text     string // where the text of a document is; "" is looked for
}

// planOf finds the tools of a server.
func planOf(tools []client.Tool, search, fetch Mapping) (p plan, err error) {
	if p.search, err = find(tools, search, "search", "query", "q", "text", "question", "search", "keywords"); err != nil {
		return p, err
	}
	if p.search.name == "" {
		return p, unsupported("name one in config.yaml: search: {tool: NAME}", "no tool to search among %s", names(tools))
	}
	if err := p.search.readHits(search["hits"]); err != nil {
		return p, err
	}
	p.fetch, err = find(tools, fetch, "fetch", "id", "uri", "url", "path", "key")
	p.fetch.text = fetch["text"]
	return p, err
}

// find finds the tool that a mapping names, or else the one called word, or else the only one
// with word in its name; and the argument that takes a value: the first of takes that it has, or
// the only one that it demands.
func find(tools []client.Tool, m Mapping, word string, takes ...string) (tool, error) {
	i := slices.IndexFunc(tools, func(t client.Tool) bool {
		return m["tool"] != "" && t.Name == m["tool"] || m["tool"] == "" && t.Name == word
	})
	if m["tool"] != "" && i < 0 {
		return tool{}, unsupported("", "%s: the server has no tool %q, but %s", word, m["tool"], names(tools))
	}
	if i < 0 {
		has := func(t client.Tool) bool {
			return slices.Contains(strings.Fields(strings.ToLower(joint.ReplaceAllString(t.Name, "$1 $2"))), word)
		}
		if i = slices.IndexFunc(tools, has); i < 0 || slices.ContainsFunc(tools[i+1:], has) {
			return tool{}, nil
		}
	}
	var shape struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(tools[i].Input, &shape); err != nil {
		return tool{}, unsupported("", "the tool %q does not say what it takes", tools[i].Name)
	}
	t := tool{name: tools[i].Name, always: map[string]any{}}
	if t.argument = m[takes[0]]; t.argument == "" {
		for _, name := range takes {
			if _, ok := shape.Properties[name]; ok {
				t.argument = name
				break
			}
		}
	}
	if t.argument == "" && len(shape.Required) == 1 {
		t.argument = shape.Required[0]
	}
	own := map[string]string{"search": "hits", "fetch": "text"}[word]
	for key, value := range m {
		if slices.Contains([]string{"tool", takes[0], own}, key) {
			continue
		}
		if _, ok := shape.Properties[key]; !ok {
			return tool{}, unsupported("", "%s: the tool %q takes no %q", word, t.name, key)
		}
		t.always[key] = typed(value, fmt.Sprint(shape.Properties[key].Type))
	}
	if _, ok := shape.Properties[t.argument]; !ok {
		return tool{}, unsupported("name one of its arguments in config.yaml: "+word+": {"+takes[0]+": …}", "the tool %q takes %s, and none of them is clearly the %s", t.name, orNothing(slices.Sorted(maps.Keys(shape.Properties))), takes[0])
	}
	for _, name := range shape.Required {
		if _, ok := t.always[name]; !ok && name != t.argument {
			return tool{}, unsupported("give it in config.yaml: "+word+": {"+name+": …}", "the tool %q demands %q", t.name, name)
		}
	}
	return t, nil
}

// joint is where a word of a name ends: search_pages, search-pages, searchPages.
var joint = regexp.MustCompile(`[^A-Za-z]+|([a-z])([A-Z])`)

// typed is a value of config.yaml as the type of an argument.
func typed(value, kind string) any {
	var v any
	if kind != "string" && json.Unmarshal([]byte(value), &v) == nil {
		return v
	}
	return value
}

// readHits reads the key hits of a mapping.
func (t *tool) readHits(form string) error {
	if t.lines = form == "lines"; t.lines || form == "" {
		return nil
	}
	list, fields, ok := strings.Cut(form, "[]")
	t.list, t.fields = list, map[string]string{}
	fields = strings.TrimPrefix(fields, ".")
	if fields != "" {
		ok = ok && strings.HasPrefix(fields, "{") && strings.HasSuffix(fields, "}")
		for f := range strings.SplitSeq(strings.Trim(fields, "{}"), ",") {
			name, place, renamed := strings.Cut(strings.TrimSpace(f), "=")
			if !renamed {
				place = name
			}
			ok = ok && place != "" && slices.Contains(hitFields, name)
			t.fields[name] = place
		}
	}
	if !ok {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "hits must be lines, or a list with its fields such as results[].{id,title,url,text=body}, of %s", strings.Join(hitFields, ", "))
	}
	return nil
}

func unsupported(hint, format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeUnsupported, format, args...)
	e.Hint = hint
	return e
}

// names are the tools of a server, for a message.
func names(tools []client.Tool) string {
	var out []string
	for _, t := range tools {
		out = append(out, plaintext.Line(t.Name, 40))
	}
	return orNothing(out)
}

func orNothing(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "nothing"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
