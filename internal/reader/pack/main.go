// Command pack turns what tools/reader/train.py writes into the packed file that
// reader carries:
//
//	go run ./internal/reader/pack LAYERS internal/embed/minilm/minilm.q8 internal/reader/reader.q8
//
// The second file is that of the embedder whose tokens the reader shares. It owns no
// format: embed/bert reads the one and writes the other.
package main

import (
	"fmt"
	"os"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

// window is how many tokens the layers were trained on: reader.Window.
const window = 256

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack LAYERS EMBEDDER WEIGHTS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(layers, embedder, weights string) error {
	trained, err := os.ReadFile(layers)
	if err != nil {
		return err
	}
	under, err := os.ReadFile(embedder)
	if err != nil {
		return err
	}
	packed, err := bert.PackCross(trained, under, window)
	if err != nil {
		return err
	}
	return os.WriteFile(weights, packed, 0o644)
}
