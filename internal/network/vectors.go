package network

import (
	"errors"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/minilm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/remote"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Vectors is what makes the sentence vectors of a command, with what was made before.
type Vectors struct {
	Embedder embed.Embedder // nil for none
	shelf    *embed.DiskStore
}

// OpenVectors opens what the settings name. A program that was built without the model
// goes without unless another is named.
func (h *Host) OpenVectors(c *settings.Settings) (*Vectors, error) {
	e, err := h.bareEmbedder(c)
	if err != nil && !errors.Is(err, minilm.ErrNoModel) {
		return nil, err
	}
	v := &Vectors{shelf: embed.OpenDiskStore(c.VectorsPath(), 0)}
	if e != nil {
		v.Embedder = embed.Cached(e, v.shelf)
	}
	return v, nil
}

// checkVectors refuses what openVectors would, and opens nothing.
func (h *Host) checkVectors(c *settings.Settings) error {
	_, err := h.bareEmbedder(c)
	if errors.Is(err, minilm.ErrNoModel) {
		return nil
	}
	return err
}

// Of finds the embedder of a run that goes on or is run again: whatever the settings
// say, the one in the program is there for its own runs.
func (v *Vectors) Of(id string) (embed.Embedder, error) {
	if v.Embedder != nil && v.Embedder.ID() == id {
		return v.Embedder, nil
	}
	e, err := BuiltinVectors(id)
	if e == nil || err != nil {
		return nil, err
	}
	return embed.Cached(e, v.shelf), nil
}

// BuiltinVectors is the embedder in the program if it has that id, and else nil.
func BuiltinVectors(id string) (embed.Embedder, error) {
	if id != minilm.ID {
		return nil, nil
	}
	return minilm.New()
}

// bareEmbedder is the embedder that the settings name, or nil. It is minilm.ErrNoModel
// where the one in the program is meant and there is none.
func (h *Host) bareEmbedder(c *settings.Settings) (embed.Embedder, error) {
	model := c.Text(settings.EmbedModel)
	switch how := c.Text(settings.Embed); {
	case how == settings.EmbedOff:
		return nil, nil
	case how == settings.EmbedOpenAI:
		custom := c.Origin(settings.OpenAIURL) != settings.FromDefault
		if c.Text(settings.OpenAIKey) == "" && !custom {
			return nil, settings.Invalid(c.Label(settings.Embed), "set "+settings.EnvOf(settings.OpenAIKey)+" in the environment or in .env, or set "+settings.EnvOf(settings.Embed)+" to "+settings.EmbedBuiltin, settings.EmbedOpenAI+" needs a key")
		}
		return remote.OpenAI(remote.Config{Key: c.Text(settings.OpenAIKey), BaseURL: c.Text(settings.OpenAIURL), Model: model, HTTP: h.sharedClient(settings.EmbedOpenAI), UserAgent: h.UserAgent()}), nil
	case how == settings.EmbedOllama:
		at := strings.TrimSuffix(providerNamed(settings.EmbedOllama).Address(c), "/v1")
		return remote.Ollama(remote.Config{BaseURL: at, Model: model, HTTP: h.sharedClient(settings.EmbedOllama), UserAgent: h.UserAgent()}), nil
	case model != "":
		return nil, settings.Invalid(c.Label(settings.EmbedModel), "set "+settings.EnvOf(settings.Embed)+" to "+settings.EmbedOllama+" or "+settings.EmbedOpenAI+", or leave it out", "is for a service that makes vectors")
	}
	return minilm.New()
}
