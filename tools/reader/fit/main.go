// Command fit asks questions of folders and prints, for each, what the extractive
// reasoner scored: one JSON object a line. score.py beside it fits the weights to that.
//
//	go run ./tools/reader/fit [-plain] questions.jsonl > scored.jsonl
//
// A line of questions.jsonl is {"folder": a path, "question": …, "keys": […], "none": bool}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
)

type asked struct {
	Folder   string   `json:"folder"`
	Question string   `json:"question"`
	Keys     []string `json:"keys"`
	Short    []string `json:"short,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	None     bool     `json:"none"`
	ID       string   `json:"id,omitempty"`
}

type scored struct {
	asked
	Seen   extractive.Watched  `json:"seen"`
	Result *marchwarden.Result `json:"result"`
}

// plain leaves reader and vectors out.
var plain = flag.Bool("plain", false, "score by words alone, as a program without its models does")

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	x := extract.New(extract.Config{})
	defer x.Close()
	cfg := desk.Config{Extractor: x}
	if !*plain {
		cfg.Embed = embed.Cached(bert.MiniLM(), embed.OpenDiskStore(filepath.Join(os.TempDir(), "marchwarden-fit"), 0))
	}
	d, err := desk.New(cfg)
	if err != nil {
		return err
	}
	libraries := map[string]eval.Library{}
	f, err := os.Open(flag.Arg(0))
	if err != nil {
		return err
	}
	defer f.Close()
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a asked
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return err
		}
		lib := libraries[a.Folder]
		if lib == nil {
			if lib, err = d.Open(ctx, filepath.Base(a.Folder), os.DirFS(a.Folder)); err != nil {
				return err
			}
			libraries[a.Folder] = lib
		}
		s := scored{asked: a}
		seen := extractive.Watch(ctx, func(w extractive.Watched) { s.Seen = w })
		if s.Result, err = lib.Ask(seen, marchwarden.Request{Question: a.Question}); err != nil {
			return err
		}
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return lines.Err()
}
