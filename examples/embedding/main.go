// Command embedding calls the principal investigator from Go: over the library that
// comes with the module, and over one researcher of its own, a value in this
// program. It prints the answer and its citations. No key and no network is needed:
//
//	go run ./examples/embedding "What grows in dry soil in Utah?"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/investigate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	question := strings.Join(os.Args[1:], " ")
	if question == "" {
		question = "What grows in dry soil in Utah?"
	}
	if err := run(ctx, question, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "embedding:", err)
		os.Exit(1)
	}
}

// run investigates one question. Its records are thrown away at the end; a program
// that wants to verify or replay answers later keeps them.
func run(ctx context.Context, question string, out, progress io.Writer) (err error) {
	home, err := os.MkdirTemp("", "embedding-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()

	shop := newShop()
	inv, err := investigate.Open(investigate.Config{
		Home:     home,
		Embedded: true,
		Researchers: []investigate.Researcher{{
			Name:     "shop",
			Scope:    "seeds and plants that grow in Utah, as our shop in Logan sells them",
			Value:    shop,
			Evidence: shop.evidence,
		}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inv.Close()) }()

	res, err := inv.Research(ctx, marchwarden.Request{Question: question}, func(e marchwarden.Event) {
		fmt.Fprintf(progress, "%s %s: %s\n", e.Researcher, e.Stage, e.Message)
	})
	if err != nil {
		return err
	}
	return show(out, res)
}

// show prints a result. Gaps are part of the answer: they say what it lacks.
func show(out io.Writer, res *marchwarden.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nconfidence %.2f\n", res.Answer, float64(res.Confidence))
	for _, r := range res.Rihlas {
		fmt.Fprintf(&b, "asked %s: %s\n", r.Researcher, r.Outcome)
	}
	for n, c := range res.Citations {
		fmt.Fprintf(&b, "[%d] %s\n    %q\n", n+1, c.Locator, c.RawExcerpt)
	}
	for _, g := range res.Gaps {
		fmt.Fprintf(&b, "gap (%s) %s: %s\n", g.Category, g.Topic, g.Detail)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
