// Command windows prints how documents are cut for the reader: one JSON object a
// document, with the text and the windows that are read.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

func main() {
	x := extract.New(extract.Config{})
	defer x.Close()
	for _, name := range os.Args[1:] {
		raw, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		doc, err := x.Extract(context.Background(), name, raw)
		if err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			continue
		}
		src := &evidence.Source{Page: fetch.Page{Title: doc.Title, Locator: name}, Text: doc.Text, Passages: evidence.Split(doc.Text)}
		enc := json.NewEncoder(os.Stdout)
		enc.SetEscapeHTML(false)
		out := document{Name: name}
		for w := range src.Windows() {
			out.Windows = append(out.Windows, window{w.Path, w.Text})
		}
		if err := enc.Encode(out); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

type document struct {
	Name    string   `json:"name"`
	Windows []window `json:"windows"`
}

type window struct {
	Path string `json:"h"`
	Text string `json:"x"`
}
