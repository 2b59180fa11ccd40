// Command go-researcher is a complete small researcher in Go: it answers questions
// about the symbols of the state of Utah from a table, and serves itself over MCP
// on standard input and output. It has no language model, no network and no files
// of its own. Try it:
//
//	go build -o symbols ./examples/go-researcher
//	marchwarden researchers check --question "What is the state tree of Utah?" ./symbols
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

//go:embed symbols.csv
var table string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := newSymbols(table, time.Now)
	if err == nil {
		err = serve.Stdio(ctx, serve.Config{
			Name:       "symbols",
			Scope:      "the official symbols of the state of Utah, such as its tree, bird and fruit",
			Version:    "1.0.0",
			Researcher: s,
			Evidence:   s.evidence,
			Log:        slog.New(slog.NewTextHandler(os.Stderr, nil)), // standard output belongs to the protocol
		}, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "symbols:", err)
		os.Exit(1)
	}
}
