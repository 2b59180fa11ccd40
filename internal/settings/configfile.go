package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is one key of the file.
type entry struct {
	Key   string
	Line  int
	Texts []string // one for a plain value, several for a list, nil for null
	// Tables are the items of a list whose items have keys of their own.
	Tables []table
}

// table is one item of such a list. Its entries have texts, never tables.
type table struct {
	Line    int
	Entries []entry
}

// fault says what is wrong with a file.
type fault struct {
	Line    int // 0 when it is the file as a whole
	Message string
	Hint    string
}

// Error is the message.
func (f *fault) Error() string { return f.Message }

// parseFile reads the keys of config.yaml: plain values, lists of them, or lists of small tables. It reads the entries in their order. A file of nothing but comments has none.
// Every error is a *fault.
func parseFile(data []byte) ([]entry, error) {
	top, err := document(data)
	if err != nil || top == nil {
		return nil, err
	}
	if top.Kind != yaml.MappingNode {
		return nil, &fault{Message: "must be a list of key: value lines", Hint: "for example: depth: deep"}
	}
	var entries []entry
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, node := top.Content[i], top.Content[i+1]
		e := entry{Key: key.Value, Line: key.Line}
		if node.Kind == yaml.SequenceNode && len(node.Content) > 0 && node.Content[0].Kind == yaml.MappingNode {
			if e.Tables, err = tables(key.Value, node); err != nil {
				return nil, err
			}
		} else if e.Texts, err = textsOf(key, node); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// tables are the items of a list that all have keys.
func tables(name string, list *yaml.Node) ([]table, error) {
	var out []table
	for _, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			return nil, &fault{Line: item.Line, Message: fmt.Sprintf("every item of %q must have keys, as the first one has", name)}
		}
		t := table{Line: item.Line}
		if err := t.add("", item); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// add adds the entries of an item, those of a key with keys of its own as key.own.
func (t *table) add(within string, item *yaml.Node) error {
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, node := item.Content[i], item.Content[i+1]
		if node.Kind == yaml.MappingNode && within == "" {
			if err := t.add(key.Value+".", node); err != nil {
				return err
			}
			continue
		}
		texts, err := textsOf(key, node)
		if err != nil {
			return err
		}
		t.Entries = append(t.Entries, entry{Key: within + key.Value, Line: key.Line, Texts: texts})
	}
	return nil
}

func textsOf(key, node *yaml.Node) ([]string, error) {
	texts, ok := scalars(node)
	if !ok {
		return nil, &fault{Line: key.Line, Message: fmt.Sprintf("key %q must have a plain value or a list of them", key.Value)}
	}
	return texts, nil
}

// document is the root of the only document, or nil when there is none.
func document(data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if err == nil {
		if again := dec.Decode(&second); again == nil {
			return nil, &fault{Message: fmt.Sprintf("line %d begins a second document; there must be one", second.Line)}
		} else if !errors.Is(again, io.EOF) {
			err = again
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &fault{Message: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// scalars is a plain value, or a list of them, as texts; null is none.
func scalars(n *yaml.Node) (texts []string, ok bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, true
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, true
	case n.Kind != yaml.SequenceNode:
		return nil, false
	}
	texts = []string{}
	for _, e := range n.Content {
		if e.Kind != yaml.ScalarNode || e.Tag == "!!null" {
			return nil, false
		}
		texts = append(texts, e.Value)
	}
	return texts, true
}
