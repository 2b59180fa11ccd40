package main

import (
	"os"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/pack"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

const packHelp = `Make the packed weights that the program carries.

'pack vectors' turns a folder with a model of the BERT family into the file of
the sentence model and its vocabulary. 'pack reader' turns what
tools/reader/train.py writes into the file of the reader, whose tokens are those
of the sentence model.`

func newPack() *cobra.Command {
	cmd := &cobra.Command{Use: "pack", Short: "make the weights that the program carries", Long: packHelp, Args: cobra.NoArgs}
	cmd.AddCommand(
		&cobra.Command{
			Use: "vectors FOLDER WEIGHTS VOCABULARY", Short: "pack a sentence model", Args: cobra.ExactArgs(3),
			Example: "  marchwarden-lab pack vectors all-MiniLM-L6-v2 internal/embed/bert/minilm.q8 internal/embed/bert/vocab.txt",
			RunE:    func(_ *cobra.Command, args []string) error { return packVectors(args[0], args[1], args[2]) },
		},
		&cobra.Command{
			Use: "reader LAYERS EMBEDDER WEIGHTS", Short: "pack the reader", Args: cobra.ExactArgs(3),
			Example: "  marchwarden-lab pack reader OUT/s4-layers.safetensors internal/embed/bert/minilm.q8 internal/reader/reader.q8",
			RunE:    func(_ *cobra.Command, args []string) error { return packReader(args[0], args[1], args[2]) },
		})
	return cmd
}

func packVectors(folder, weights, vocabulary string) error {
	packed, words, err := pack.Vectors(os.DirFS(folder))
	if err != nil {
		return err
	}
	if err := write(weights, packed); err != nil {
		return err
	}
	return write(vocabulary, []byte(words))
}

func packReader(layers, embedder, weights string) error {
	trained, err := os.ReadFile(layers)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeNotFound, "read the layers")
	}
	under, err := os.ReadFile(embedder)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeNotFound, "read the sentence model")
	}
	packed, err := pack.Reader(trained, under, reader.Window)
	if err != nil {
		return err
	}
	return write(weights, packed)
}
