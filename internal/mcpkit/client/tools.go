package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// Tool is a tool of a server that was dialled for its own tools. Nothing in it was cleaned.
type Tool struct {
	Name, Title, Description string
	Input                    json.RawMessage // the schema of its arguments
}

// Found is what a tool gave.
type Found struct {
	Structured []json.RawMessage // the structured content, then texts that are JSON
	Text       string            // its texts, joined by newlines
	Files      []File            // documents that came with it
	Links      []Link            // documents that it points at
}

// File is a document inside an answer.
type File struct {
	URI, MediaType string
	Data           []byte
}

// Link is a document that an answer points at.
type Link struct{ URI, Name, Description string }

// Tools are the tools of a server that was dialled for them, by name.
func (s *Session) Tools() []Tool { return s.tools }

// list gives every tool of the server.
func (s *Session) list(ctx context.Context) (all []*mcp.Tool, err error) {
	for tool, err := range s.cs.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(all) == maxListed {
			return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the server lists more than %d tools", maxListed)
		}
		all = append(all, tool)
	}
	return all, nil
}

// learnTools takes the tools of a server, and pins all that they say of themselves.
func (s *Session) learnTools(ctx context.Context) error {
	all, err := s.list(ctx)
	if err != nil {
		return err
	}
	for _, tool := range all {
		input, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the schema of a tool")
		}
		s.tools = append(s.tools, Tool{tool.Name, tool.Title, tool.Description, input})
	}
	slices.SortFunc(s.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	var names, pinned []string
	for _, t := range s.tools {
		names = append(names, t.Name)
		pinned = append(pinned, t.Name, t.Title, t.Description, string(t.Input))
	}
	s.card.Contract, s.card.ToolHash = marchwarden.ContractVersion, toolHash(pinned...)
	s.card.Description = mcpkit.Clip(mcpkit.Plain("tools: "+strings.Join(names, ", ")), maxDescriptionChars)
	return nil
}

// Use calls a tool of a server that was dialled for its own tools. A failure that the tool reports
// is CodeUnavailable, and its words are not in the message: they may hold anything.
func (s *Session) Use(ctx context.Context, tool string, args map[string]any) (Found, error) {
	res, err := briefly(ctx, s, fmt.Sprintf("call the tool %q", tool), s.fault, func(ctx context.Context) (*mcp.CallToolResult, error) {
		return s.converse(ctx, &mcp.CallToolParams{Name: tool, Arguments: maps.Clone(args)})
	})
	if err != nil {
		return Found{}, err
	}
	f, err := found(res)
	if err == nil && res.IsError {
		words := marchwarden.Errorf(marchwarden.CodeUnavailable, "the tool failed: %s", said(f.Text))
		return Found{}, quoting(words, "the tool failed")
	}
	return f, err
}

// found is what an answer holds.
func found(res *mcp.CallToolResult) (f Found, err error) {
	if res.StructuredContent != nil {
		encoded, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return f, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the structured content")
		}
		f.Structured = append(f.Structured, encoded)
	}
	var texts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
			if isJSON(c.Text) {
				f.Structured = append(f.Structured, json.RawMessage(c.Text))
			}
		case *mcp.ResourceLink:
			f.Links = append(f.Links, Link{c.URI, c.Name, c.Description})
		case *mcp.EmbeddedResource:
			if r := c.Resource; r != nil {
				data := r.Blob
				if data == nil {
					data = []byte(r.Text)
				}
				f.Files = append(f.Files, File{r.URI, r.MIMEType, data})
			}
		}
	}
	f.Text = strings.Join(texts, "\n")
	return f, nil
}

// isJSON reports whether a text is an object or a list.
func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	return (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && json.Valid([]byte(s))
}
