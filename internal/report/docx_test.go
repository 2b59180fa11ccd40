package report

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// opened is the parts of a document, each well-formed.
func opened(t testing.TB, r *Report) map[string]string {
	t.Helper()
	var out bytes.Buffer
	if err := DOCX(&out, r); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range z.File {
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		parts[f.Name] = string(content)
	}
	return parts
}

// node is an element of XML, by its local names.
type node struct {
	name, text string
	attrs      map[string]string
}

// nodesOf are the elements of a part in their order, each with the text that is directly in it.
func nodesOf(t testing.TB, part string) []node {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(part))
	var out []node
	var open []int
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in %s", err, part)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			n := node{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				n.attrs[a.Name.Local] = a.Value
			}
			out, open = append(out, n), append(open, len(out))
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				out[open[len(open)-1]].text += string(tok)
			}
		}
	}
}

// spoken is the text of a part.
func spoken(nodes []node) string {
	var b strings.Builder
	for _, n := range nodes {
		if n.name == "p" {
			b.WriteString("\n")
		}
		if n.name == "t" {
			b.WriteString(n.text)
		}
	}
	return b.String()
}

// sound holds the parts to each other: what is named is there, and is what it is said to be.
func sound(t testing.TB, parts map[string]string) {
	t.Helper()
	for name, part := range parts {
		for _, n := range nodesOf(t, part) {
			if n.name == "Override" && parts[strings.TrimPrefix(n.attrs["PartName"], "/")] == "" {
				t.Errorf("%s names %s, which is not there", name, n.attrs["PartName"])
			}
			if to := n.attrs["Target"]; n.name == "Relationship" {
				external := n.attrs["TargetMode"] == "External"
				if !external && parts[path.Join(strings.TrimSuffix(path.Dir(name), "_rels"), to)] == "" {
					t.Errorf("%s leads to %s, which is not there", name, to)
				}
				if external && !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") {
					t.Errorf("%s leads to %s", name, to)
				}
			}
		}
	}
	ids := func(part, element, attr string) []string {
		var out []string
		for _, n := range nodesOf(t, parts[part]) {
			if n.name == element && n.attrs[attr] != "" {
				out = append(out, n.attrs[attr])
			}
		}
		return out
	}
	there := ids("word/_rels/document.xml.rels", "Relationship", "Id")
	for _, id := range ids("word/document.xml", "hyperlink", "id") {
		if !slices.Contains(there, id) {
			t.Errorf("there is no relationship %s", id)
		}
	}
	styles := ids("word/styles.xml", "style", "styleId")
	for _, element := range []string{"pStyle", "rStyle", "tblStyle"} {
		for _, id := range ids("word/document.xml", element, "val") {
			if !slices.Contains(styles, id) {
				t.Errorf("there is no style %s", id)
			}
		}
	}
}

func TestDOCX(t *testing.T) {
	r := sample(t, plain)
	r.Result.Blocks = wired(t).Blocks
	parts := opened(t, r)
	if !maps.Equal(parts, opened(t, r)) {
		t.Error("the same report gives other bytes")
	}
	sound(t, parts)
	body := nodesOf(t, parts["word/document.xml"])
	said := spoken(body)
	for _, want := range []string{"When is the last frost in Salt Lake City?", "\nRye ripens at 2,400 metres.[1]", "\nYields\n", "\n4.2 tonnes a hectare", "\n–", "References", "\n[4] A. Bee, J. van der Berg, et al., “Frost dates,” Journal of Frost, Mar. 2, 2025.",
		"\nAppendix: excerpts\n", "\nThe average last frost falls on 26 April.", "This excerpt does not stand"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in %s", want, said)
		}
	}
	count := func(name string) (n int) {
		for _, x := range body {
			if x.name == name {
				n++
			}
		}
		return n
	}
	if count("tbl") != 3 || count("tblHeader") != 3 {
		t.Errorf("%d tables, %d heads", count("tbl"), count("tblHeader"))
	}
}

// TestDOCXIsInert compares documents with hostile and with tame texts: not one element may differ, and
// the texts are there.
func TestDOCXIsInert(t *testing.T) {
	shape := func(p string) (names []string, said string) {
		r := sample(t, func(s string) string { return s + p })
		r.Result.Blocks = hostileBlocks("x" + p).Blocks
		parts := opened(t, r)
		sound(t, parts)
		nodes := nodesOf(t, parts["word/document.xml"])
		for _, n := range nodes {
			names = append(names, n.name)
		}
		return names, spoken(nodes)
	}
	want, _ := shape("tame")
	for _, p := range payloads {
		if strings.Contains(strings.TrimSpace(p), "\n") { // an excerpt has a paragraph a line
			p = strings.Join(strings.Fields(p), " ")
		}
		got, said := shape(p)
		if !slices.Equal(got, want) || !strings.Contains(said, plaintext.Fold("x"+p)) {
			t.Errorf("with %q there are %d elements, want %d", p, len(got), len(want))
		}
	}
}
