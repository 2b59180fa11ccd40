package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// keyResearchers is the key of config.yaml that is no setting but a list.
const keyResearchers = "researchers"

// formerKeys are keys of earlier versions, which are passed over.
var formerKeys = []string{"render", "fallback_model", "embed_model", "doi_url"}

// readConfigFile reads config.yaml into the texts of each key, and its researchers. Errors name the
// file, and the line where there is one.
func readConfigFile(path string) (map[string][]string, []Member, error) {
	var top *yaml.Node
	data, err := readSettings(path)
	if err == nil {
		top, err = document(path, data)
	}
	if err != nil || top == nil {
		return nil, nil, err
	}
	if top.Kind != yaml.MappingNode {
		return nil, nil, Invalid(path, "for example: depth: deep", "must be a list of key: value lines")
	}
	file := map[string][]string{}
	var members []Member
	for key, node := range mapping(top) {
		where := fmt.Sprintf("%s:%d", path, key.Line)
		switch {
		case slices.Contains(formerKeys, key.Value):
			continue
		case key.Value == keyResearchers && members != nil:
			err = Invalid(where, "", fmt.Sprintf("key %q is there twice", key.Value))
		case key.Value == keyResearchers:
			members, err = readMembers(path, node)
		default:
			var texts []string
			if err = checkKey(where, key.Value, file); err == nil {
				texts, err = scalars(where, key.Value, node)
			}
			if texts != nil {
				file[key.Value] = texts
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return file, members, nil
}

func checkKey(where, key string, have map[string][]string) error {
	i := slices.IndexFunc(All, func(s Setting) bool { return s.Name == key })
	switch {
	case i < 0:
		var keys []string
		for _, s := range All {
			if !s.EnvOnly {
				keys = append(keys, s.Name)
			}
		}
		return Invalid(where, "the keys are "+Either(append(keys, keyResearchers)), fmt.Sprintf("unknown key %q", plaintext.Clip(key, 60)))
	case All[i].EnvOnly:
		places := "in the environment or in .env"
		if All[i].Personal {
			places = "in the environment"
		}
		return Invalid(where, "set "+All[i].Env+" "+places, fmt.Sprintf("key %q cannot be set in this file", key))
	case have[key] != nil:
		return Invalid(where, "", fmt.Sprintf("key %q is there twice", key))
	}
	return nil
}

// readMembers reads the researchers of config.yaml: a list of items with keys of their own.
func readMembers(path string, list *yaml.Node) ([]Member, error) {
	var out []Member
	if list.Kind != yaml.SequenceNode && list.Tag != "!!null" {
		return nil, Invalid(fmt.Sprintf("%s:%d", path, list.Line), "see docs/configuration.md", "researchers must be a list of items with name, scope and command or url")
	}
	for _, item := range list.Content {
		m := Member{At: fmt.Sprintf("%s:%d", path, item.Line)}
		if item.Kind != yaml.MappingNode {
			return nil, Invalid(m.At, "see docs/configuration.md", "researchers must be a list of items with name, scope and command or url")
		}
		if err := m.read(path, item); err != nil {
			return nil, err
		}
		if problem, hint := m.problem(out); problem != "" {
			return nil, Invalid(m.At, hint, problem)
		}
		out = append(out, m)
	}
	return out, nil
}

// read sets what the keys of an item say.
func (m *Member) read(path string, item *yaml.Node) error {
	var seen []string
	for key, node := range mapping(item) {
		where := fmt.Sprintf("%s:%d", path, key.Line)
		if slices.Contains(seen, key.Value) {
			return Invalid(where, "", fmt.Sprintf("key %q is there twice", plaintext.Clip(key.Value, 60)))
		}
		seen = append(seen, key.Value)
		if use := map[string]*map[string]string{"search": &m.Search, "fetch": &m.Fetch}[key.Value]; use != nil && node.Kind == yaml.MappingNode {
			*use = map[string]string{}
			for key, node := range mapping(node) {
				var value string
				texts, err := scalars(where, key.Value, node)
				if err != nil {
					return err
				}
				if problem := one(texts, &value); problem != "" {
					return Invalid(fmt.Sprintf("%s:%d", path, key.Line), "", key.Value+" "+problem)
				}
				(*use)[key.Value] = value
			}
			continue
		}
		texts, err := scalars(where, key.Value, node)
		if err != nil {
			return err
		}
		set, known := memberKeys[key.Value]
		if !known {
			return Invalid(where, "the keys are name, kind, scope, command, url, token_env, client_id, client_secret_env, env, share, trust, private, off, timeout, and search and fetch of a connector", fmt.Sprintf("unknown key %q of a researcher", plaintext.Clip(key.Value, 60)))
		}
		if problem := set(m, texts); problem != "" {
			return Invalid(where, "", key.Value+" "+problem)
		}
	}
	if m.Connector && !slices.Contains(seen, "private") {
		m.Private = true // until the user says that it is not
	}
	return nil
}

// document is the root of the only document, or nil when there is none.
func document(path string, data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if err == nil {
		if again := dec.Decode(&second); again == nil {
			return nil, Invalid(path, "", fmt.Sprintf("line %d begins a second document; there must be one", second.Line))
		} else if !errors.Is(again, io.EOF) {
			err = again
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, Invalid(path, "", "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// mapping gives the keys of a mapping and what stands at them.
func mapping(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for pair := range slices.Chunk(n.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

// scalars is a plain value, or a list of them, as texts; null is none.
func scalars(where, key string, n *yaml.Node) ([]string, error) {
	wrong := Invalid(where, "", fmt.Sprintf("key %q must have a plain value or a list of them", plaintext.Clip(key, 60)))
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, wrong
	}
	texts := []string{}
	for _, e := range n.Content {
		if e.Kind != yaml.ScalarNode || e.Tag == "!!null" {
			return nil, wrong
		}
		texts = append(texts, e.Value)
	}
	return texts, nil
}
