package connector

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

// hit is what a search says of one document.
type hit struct{ id, title, url, text, published string }

// hitFields are the fields of a hit that a mapping may name; usual are what servers call them.
var (
	hitFields = []string{"id", "title", "url", "text", "published"}
	usual     = map[string][]string{
		"id":        {"id", "uri", "url", "path", "key", "name"},
		"title":     {"title", "name", "label", "heading"},
		"url":       {"url", "link", "web_url", "href", "uri"},
		"text":      {"text", "content", "body", "markdown", "snippet", "excerpt", "summary", "description"},
		"published": {"published", "date", "created", "updated", "metadata.published", "metadata.date"},
		"list":      {"results", "hits", "documents", "items", "pages", "data", "result"},
		"inner":     {"result", "document", "page", "data"},
	}
)

// minAnswer is the length from which a text that is no list is a document. A shorter one is a word
// about the search, such as that nothing was found.
const minAnswer = 200

// wholeAnswer begins the id of a document that is the whole answer to a search.
const wholeAnswer = "?"

// hits are what an answer to a search lists. Where it lists nothing and is a text, the text is the
// one hit.
func (t tool) hits(f client.Found, query string) []hit {
	var out []hit
	if t.lines {
		for line := range strings.Lines(f.Text) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, hit{id: line, title: line})
			}
		}
		return out
	}
	for _, value := range f.Structured {
		for _, item := range t.listIn(decode(value)) {
			if h := t.hitIn(item); h.id != "" {
				out = append(out, h)
			}
		}
		if out != nil {
			return out
		}
	}
	for _, l := range f.Links {
		out = append(out, hit{id: l.URI, title: l.Name, url: l.URI, text: l.Description})
	}
	for _, file := range f.Files {
		out = append(out, hit{id: file.URI, url: file.URI, text: string(file.Data)})
	}
	if len(out) == 0 && len(f.Structured) == 0 && len(strings.TrimSpace(f.Text)) >= minAnswer {
		return []hit{{id: wholeAnswer + query, title: query, text: f.Text}}
	}
	return out
}

// listIn is the list of hits in an answer: the one that the mapping names, a list that is called
// as usual, or the only list there is.
func (t tool) listIn(v any) []any {
	if t.list != "" {
		v = at(v, t.list)
	}
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		if t.list != "" {
			return nil
		}
		for _, name := range usual["list"] {
			if list, ok := v[name].([]any); ok {
				return list
			}
		}
		var only []any
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if list, ok := v[name].([]any); ok {
				if only != nil {
					return nil
				}
				only = list
			}
		}
		return only
	}
	return nil
}

func (t tool) hitIn(item any) hit {
	if id, ok := item.(string); ok {
		return hit{id: id, title: id}
	}
	get := func(field string) string { return first(item, t.fields[field], usual[field]) }
	return hit{id: get("id"), title: get("title"), url: get("url"), text: get("text"), published: get("published")}
}

// document is what an answer to a fetch holds, and the file that it is if it is one.
func (t tool) document(f client.Found) (h hit, file *client.File) {
	for _, value := range f.Structured {
		v := decode(value)
		for _, name := range usual["inner"] {
			if inner, ok := at(v, name).(map[string]any); ok && t.text == "" {
				v = inner
				break
			}
		}
		h = hit{title: first(v, "", usual["title"]), url: first(v, "", usual["url"]), published: first(v, "", usual["published"])}
		if h.text = first(v, t.text, usual["text"]); h.text != "" {
			return h, nil
		}
	}
	if len(f.Files) > 0 {
		h.text = string(f.Files[0].Data)
		return h, &f.Files[0]
	}
	h.text = f.Text
	return h, nil
}

func decode(value json.RawMessage) (v any) {
	_ = json.Unmarshal(value, &v) // the client has seen that it is JSON
	return v
}

// first is what stands at place, or, where no place is named, at the first of the usual ones.
func first(v any, place string, usual []string) string {
	if place != "" {
		return words(at(v, place))
	}
	for _, name := range usual {
		if text := words(at(v, name)); text != "" {
			return text
		}
	}
	return ""
}

// at follows a path such as page.body.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// words is a value as text: lists a paragraph an item, objects by their text or a line a key.
func words(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var lines []string
		for _, item := range v {
			lines = append(lines, words(item))
		}
		return strings.Join(lines, "\n\n")
	case map[string]any:
		if text, ok := v["text"]; ok {
			return words(text)
		}
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, key+": "+words(v[key]))
		}
		return strings.Join(lines, "\n")
	}
	return ""
}
