package investigate

import (
	"encoding/json"
	"errors"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/minilm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/shelf"
)

// judgement is what all minds of an investigator judge by.
type judgement struct {
	vectors     embed.Embedder // nil to go by words alone
	calibration json.RawMessage
}

// vectorsOf is the embedder of an id, or nil if it is another.
func (j judgement) vectorsOf(id string) (embed.Embedder, error) {
	if j.vectors == nil || j.vectors.ID() != id {
		return nil, nil
	}
	return j.vectors, nil
}

// judge opens the sentence encoder, with the vectors that it has made before, and the
// table of confidence. A program that was built without the encoder goes by words.
func (i *Investigator) judge(cfg Config) (judgement, error) {
	table, err := confidence.Shipped()
	if err != nil {
		return judgement{}, marchwarden.Wrap(err, marchwarden.CodeInternal, "read the table of confidence")
	}
	var j judgement
	if j.calibration, err = json.Marshal(table); err != nil || cfg.WordsAlone {
		return j, marchwarden.Wrap(err, marchwarden.CodeInternal, "write the table of confidence")
	}
	encoder, err := minilm.New()
	if errors.Is(err, minilm.ErrNoModel) {
		return j, nil
	}
	if err != nil {
		return j, err
	}
	kept := shelf.Open(filepath.Join(cfg.Home, "vectors"), 0)
	i.close = append(i.close, kept.Close)
	j.vectors = embed.Cached(encoder, kept)
	return j, nil
}
