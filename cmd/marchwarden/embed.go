package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/kernel"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/minilm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/remote"
	vectorshelf "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/shelf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// vectors is what makes the sentence vectors of a command, with what was made before.
// Close it when done.
type vectors struct {
	embedder embed.Embedder // nil for none
	shelf    *vectorshelf.Shelf
}

// openVectors opens what the settings name. A program that was built without the model
// goes without unless another is named.
func (a *app) openVectors(c *settings.Settings) (*vectors, error) {
	e, err := a.bareEmbedder(c)
	if err != nil && !errors.Is(err, minilm.ErrNoModel) {
		return nil, err
	}
	v := &vectors{shelf: vectorshelf.Open(c.VectorsPath(), 0)}
	if e != nil {
		v.embedder = embed.Cached(e, v.shelf)
	}
	return v, nil
}

// checkVectors refuses what openVectors would, and opens nothing.
func (a *app) checkVectors(c *settings.Settings) error {
	_, err := a.bareEmbedder(c)
	if errors.Is(err, minilm.ErrNoModel) {
		return nil
	}
	return err
}

// of finds the embedder of a run that goes on or is run again: whatever the settings
// say, the one in the program is there for its own runs.
func (v *vectors) of(id string) (embed.Embedder, error) {
	if v.embedder != nil && v.embedder.ID() == id {
		return v.embedder, nil
	}
	e, err := builtinVectors(id)
	if e == nil || err != nil {
		return nil, err
	}
	return embed.Cached(e, v.shelf), nil
}

// builtinVectors is the embedder in the program if it has that id, and else nil.
func builtinVectors(id string) (embed.Embedder, error) {
	if id != minilm.ID {
		return nil, nil
	}
	return minilm.New()
}

func (v *vectors) Close() error { return v.shelf.Close() }

// bareEmbedder is the embedder that the settings name, or nil. It is minilm.ErrNoModel
// where the one in the program is meant and there is none.
func (a *app) bareEmbedder(c *settings.Settings) (embed.Embedder, error) {
	model := c.Text(settings.EmbedModel)
	switch how := c.Text(settings.Embed); {
	case how == settings.EmbedOff:
		return nil, nil
	case how == settings.EmbedOpenAI:
		custom := c.Origin(settings.OpenAIURL) != settings.FromDefault
		if c.Text(settings.OpenAIKey) == "" && !custom {
			return nil, invalid(c.Label(settings.Embed), "set "+settings.EnvOf(settings.OpenAIKey)+" in the environment or in .env, or set "+settings.EnvOf(settings.Embed)+" to "+settings.EmbedBuiltin, settings.EmbedOpenAI+" needs a key")
		}
		return remote.OpenAI(remote.Config{Key: c.Text(settings.OpenAIKey), BaseURL: c.Text(settings.OpenAIURL), Model: model, HTTP: a.sharedClient(settings.EmbedOpenAI), UserAgent: userAgent()}), nil
	case how == settings.EmbedOllama:
		at := strings.TrimSuffix(providerNamed(settings.EmbedOllama).address(c), "/v1")
		return remote.Ollama(remote.Config{BaseURL: at, Model: model, HTTP: a.sharedClient(settings.EmbedOllama), UserAgent: userAgent()}), nil
	case model == "":
		return minilm.New()
	}
	return a.folderEmbedder(c, model)
}

// folderEmbedder loads a model from a folder of the user's.
func (a *app) folderEmbedder(c *settings.Settings, path string) (embed.Embedder, error) {
	base := a.dir
	if c.Origin(settings.EmbedModel) == settings.FromFile {
		base = c.Home()
	}
	path = a.source().Absolute(path, base)
	const hint = "a folder with config.json, vocab.txt or tokenizer.json, and model.safetensors of a BERT-family model"
	wrong := func(why string) error { return invalid(c.Label(settings.EmbedModel), hint, path+" "+why) }
	root, err := os.OpenRoot(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("does not exist")
	case err != nil:
		return nil, wrong("is no folder that can be opened: " + durable.Cause(err))
	}
	defer root.Close() // everything is read by then
	e, err := bert.Load(root.FS())
	if err != nil {
		return nil, wrong("holds no model that can be used: " + err.Error())
	}
	return e, nil
}

// vectorPart is the row of doctor, with a way to try a service.
func (a *app) vectorPart(c *settings.Settings) servicePart {
	row := partRow{"sentence vectors", partOK, ""}
	e, err := a.bareEmbedder(c)
	switch {
	case errors.Is(err, minilm.ErrNoModel):
		row.State, row.Detail = partOff, err.Error()+"; texts are compared by their words alone, and answers are picked without the reader"
	case err != nil:
		row.State, row.Detail = partBroken, err.Error()
	case e == nil:
		row.State, row.Detail = partOff, c.Label(settings.Embed)+" is off; texts are compared by their words alone, and answers are picked without the reader"
	}
	if e == nil {
		return servicePart{partRow: row}
	}
	if _, pure := e.(embed.Pure); pure {
		row.Detail = e.ID() + " on this machine, " + kernel.Best().Name + " arithmetic; answers are picked by " + reader.ID
		return servicePart{partRow: row}
	}
	row.Detail = e.ID() + " (by " + c.Label(settings.Embed) + "): what is searched and read is sent there"
	return servicePart{partRow: row, try: func(ctx context.Context) (string, error) {
		vs, err := e.Embed(ctx, []string{"ok"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("vectors of %d numbers", len(vs[0])), nil
	}}
}

// keptVectors says how many vectors were made before.
func keptVectors(c *settings.Settings) partRow {
	size, n, err := vectorshelf.Size(c.VectorsPath())
	switch {
	case err != nil:
		return partRow{"kept vectors", partOff, "cannot be read, and are made again: " + durable.Cause(err)}
	case n == 0:
		return partRow{"kept vectors", partOff, "none yet; the first question makes some"}
	}
	return partRow{"kept vectors", partOK, fmt.Sprintf("%s, %s in %s; may be deleted", term.Count(n), term.Bytes(size), c.VectorsPath())}
}

// readableVectors refuses what the settings of vectors cannot mean.
func (a *app) readableVectors(c *settings.Settings) error {
	_, err := a.bareEmbedder(c)
	if c.Text(settings.Embed) == settings.EmbedBuiltin && errors.Is(err, marchwarden.CodeInvalid) {
		return err
	}
	return nil
}
