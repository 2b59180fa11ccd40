// Package configfile reads config.yaml: one document of keys with plain values,
// lists of them, or lists of small tables. Which keys there are, and what their values mean, is the
// command's business; it stays out of here so that the reader can be tried on
// hostile input without the whole program.
package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Entry is one key of the file.
type Entry struct {
	Key   string
	Line  int
	Texts []string // one for a plain value, several for a list, nil for null
	// Tables are the items of a list whose items have keys of their own.
	Tables []Table
}

// Table is one item of such a list. Its entries have texts, never tables.
type Table struct {
	Line    int
	Entries []Entry
}

// Fault says what is wrong with a file.
type Fault struct {
	Line    int // 0 when it is the file as a whole
	Message string
	Hint    string
}

// Error is the message.
func (f *Fault) Error() string { return f.Message }

// Parse reads the entries in their order. A file of nothing but comments has none.
// Every error is a *Fault.
func Parse(data []byte) ([]Entry, error) {
	top, err := document(data)
	if err != nil || top == nil {
		return nil, err
	}
	if top.Kind != yaml.MappingNode {
		return nil, &Fault{Message: "must be a list of key: value lines", Hint: "for example: depth: deep"}
	}
	var entries []Entry
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, node := top.Content[i], top.Content[i+1]
		e := Entry{Key: key.Value, Line: key.Line}
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
func tables(name string, list *yaml.Node) ([]Table, error) {
	var out []Table
	for _, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			return nil, &Fault{Line: item.Line, Message: fmt.Sprintf("every item of %q must have keys, as the first one has", name)}
		}
		t := Table{Line: item.Line}
		for i := 0; i+1 < len(item.Content); i += 2 {
			key, node := item.Content[i], item.Content[i+1]
			texts, err := textsOf(key, node)
			if err != nil {
				return nil, err
			}
			t.Entries = append(t.Entries, Entry{Key: key.Value, Line: key.Line, Texts: texts})
		}
		out = append(out, t)
	}
	return out, nil
}

func textsOf(key, node *yaml.Node) ([]string, error) {
	texts, ok := scalars(node)
	if !ok {
		return nil, &Fault{Line: key.Line, Message: fmt.Sprintf("key %q must have a plain value or a list of them", key.Value)}
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
			return nil, &Fault{Message: fmt.Sprintf("line %d begins a second document; there must be one", second.Line)}
		} else if !errors.Is(again, io.EOF) {
			err = again
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &Fault{Message: "is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
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
