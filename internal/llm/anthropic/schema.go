package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The keywords of JSON Schema that the API takes; it refuses a request with
// others. Limits that are dropped here are for the reader of the reply to check.
var (
	schemaKeys = []string{"$ref", "$defs", "type", "anyOf", "allOf", "description", "title", "enum", "const",
		"properties", "required", "items", "minItems", "format", "pattern"}
	schemaFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

// member is one key of an object. Objects are kept as lists of members, because a
// model writes properties in the order of the schema.
type member struct {
	key   string
	value json.RawMessage
}

// fit rewrites a schema into the part of JSON Schema that the API takes: objects
// are closed, oneOf becomes anyOf, and unknown keywords go.
func fit(schema json.RawMessage) (json.RawMessage, error) {
	if s := string(bytes.TrimSpace(schema)); s == "true" || s == "false" {
		return schema, nil
	}
	members, err := object(schema)
	if err != nil {
		return nil, err
	}
	var out []member
	closed := false
	for _, m := range members {
		if m.key == "oneOf" {
			m.key = "anyOf"
		}
		if !slices.Contains(schemaKeys, m.key) {
			continue
		}
		switch m.key {
		case "properties", "$defs":
			m.value, err = fitMembers(m.value)
		case "items":
			m.value, err = fit(m.value)
		case "anyOf", "allOf":
			m.value, err = fitList(m.value)
		case "type":
			closed = closed || bytes.Contains(m.value, []byte(`"object"`))
		case "minItems":
			if s := string(m.value); s != "0" && s != "1" {
				continue
			}
		case "format":
			var name string
			if json.Unmarshal(m.value, &name) != nil || !slices.Contains(schemaFormats, name) {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.key, err)
		}
		out = append(out, m)
	}
	if closed {
		out = append(out, member{"additionalProperties", json.RawMessage("false")})
	}
	return write(out), nil
}

func fitMembers(raw json.RawMessage) (json.RawMessage, error) {
	members, err := object(raw)
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		if members[i].value, err = fit(m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.key, err)
		}
	}
	return write(members), nil
}

func fitList(raw json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for i := range list {
		var err error
		if list[i], err = fit(list[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(list)
}

// object reads the members of an object, in order.
func object(raw json.RawMessage) ([]member, error) {
	if !isObject(raw) {
		return nil, errors.New("not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // the brace
		return nil, err
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func write(members []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil { // a string always marshals
			continue
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
