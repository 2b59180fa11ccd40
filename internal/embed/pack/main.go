// Command pack turns a folder with a model of the BERT family into the packed file
// that embed/minilm carries, and the vocabulary beside it:
//
//	go run ./internal/embed/pack FOLDER minilm.q8 vocab.txt
//
// It owns no format: embed/bert reads the one and writes the other.
package main

import (
	"fmt"
	"io/fs"
	"os"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack FOLDER WEIGHTS VOCABULARY")
		os.Exit(2)
	}
	if err := run(os.DirFS(os.Args[1]), os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(fsys fs.FS, weights, vocabulary string) error {
	packed, words, err := bert.Pack(fsys)
	if err != nil {
		return err
	}
	if err := os.WriteFile(weights, packed, 0o644); err != nil {
		return err
	}
	return os.WriteFile(vocabulary, []byte(words), 0o644)
}
