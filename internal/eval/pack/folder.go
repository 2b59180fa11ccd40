package pack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
)

// The largest files that are read.
const (
	maxWeights = 2 << 30
	maxText    = 64 << 20
)

// defaultWindow is how many tokens are read where a model does not say: what
// sentence encoders are trained on.
const defaultWindow = 256

// config is what is read of config.json.
type config struct {
	Type       string   `json:"model_type"`
	Activation string   `json:"hidden_act"`
	Positions  string   `json:"position_embedding_type"`
	Hidden     int      `json:"hidden_size"`
	Heads      int      `json:"num_attention_heads"`
	Inner      int      `json:"intermediate_size"`
	Depth      int      `json:"num_hidden_layers"`
	Vocabulary int      `json:"vocab_size"`
	Places     int      `json:"max_position_embeddings"`
	Kinds      *int     `json:"type_vocab_size"`
	Eps        *float32 `json:"layer_norm_eps"`
}

func readFolder(fsys fs.FS) (*encoder, []string, error) {
	var c config
	if err := readJSON(fsys, "config.json", &c); err != nil {
		return nil, nil, err
	}
	for _, f := range []struct{ name, value, want string }{
		{"model_type", c.Type, "bert"}, {"hidden_act", c.Activation, "gelu"}, {"position_embedding_type", c.Positions, "absolute"},
	} {
		if cmp.Or(f.value, f.want) != f.want {
			return nil, nil, invalid("config.json: "+f.name, "%q, and only %q is run", f.value, f.want)
		}
	}
	e := &encoder{Shape: bert.Shape{Hidden: c.Hidden, Heads: c.Heads, Inner: c.Inner, Depth: c.Depth, Vocabulary: c.Vocabulary, Positions: c.Places, Eps: 1e-12}}
	if c.Eps != nil {
		e.Eps = *c.Eps
	}
	words, err := e.readSettings(fsys)
	if err != nil {
		return nil, nil, err
	}
	if err := e.check(); err != nil {
		return nil, nil, err
	}
	kinds := 2
	if c.Kinds != nil {
		kinds = *c.Kinds
	}
	if err := e.readWeights(fsys, kinds); err != nil {
		return nil, nil, err
	}
	return e, words, nil
}

func (e *encoder) readSettings(fsys fs.FS) ([]string, error) {
	var sentence struct {
		Window int `json:"max_seq_length"`
	}
	if err := optional(readJSON(fsys, "sentence_bert_config.json", &sentence)); err != nil {
		return nil, err
	}
	e.Window = min(cmp.Or(sentence.Window, defaultWindow), e.Positions)

	var modules []struct {
		Type string `json:"type"`
	}
	if err := optional(readJSON(fsys, "modules.json", &modules)); err != nil {
		return nil, err
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Pooling", "Normalize":
		default:
			return nil, invalid("modules.json", "a module of type %q is not run", kind)
		}
	}

	pooling := map[string]any{}
	if err := optional(readJSON(fsys, "1_Pooling/config.json", &pooling)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(pooling)) {
		mode, ok := strings.CutPrefix(name, "pooling_mode_")
		if ok && pooling[name] == true && mode != "mean_tokens" {
			return nil, invalid("1_Pooling/config.json", "%s is not run: the mean of all tokens is", name)
		}
	}
	words, err := readWords(fsys)
	switch marks := []string{"[CLS]", "[SEP]", "[UNK]"}; {
	case err != nil:
		return nil, err
	case len(words) > e.Vocabulary:
		return nil, invalid("vocabulary", "%d tokens, and the weights are for %d", len(words), e.Vocabulary)
	case slices.ContainsFunc(marks, func(m string) bool { return !slices.Contains(words, m) }):
		return nil, invalid("vocabulary", "it must have %s", strings.Join(marks, ", "))
	}
	return words, nil
}

// readWords reads the vocabulary. What tokenizer_config.json says goes before tokenizer.json.
func readWords(fsys fs.FS) ([]string, error) {
	var file struct {
		Normalizer struct {
			Lower *bool `json:"lowercase"`
			Strip *bool `json:"strip_accents"`
			Han   *bool `json:"handle_chinese_chars"`
		} `json:"normalizer"`
		Model struct {
			Type       string         `json:"type"`
			Vocabulary map[string]int `json:"vocab"`
		} `json:"model"`
	}
	var settings struct {
		Lower *bool `json:"do_lower_case"`
		Strip *bool `json:"strip_accents"`
		Han   *bool `json:"tokenize_chinese_chars"`
	}
	if err := optional(readJSON(fsys, "tokenizer.json", &file)); err != nil {
		return nil, err
	}
	if kind := cmp.Or(file.Model.Type, "WordPiece"); kind != "WordPiece" {
		return nil, invalid("tokenizer.json: model.type", "%q, and only \"WordPiece\" is read", kind)
	}
	if err := optional(readJSON(fsys, "tokenizer_config.json", &settings)); err != nil {
		return nil, err
	}
	yes := true
	lower := cmp.Or(settings.Lower, file.Normalizer.Lower, &yes)
	if !*lower || !*cmp.Or(settings.Strip, file.Normalizer.Strip, lower) || !*cmp.Or(settings.Han, file.Normalizer.Han, &yes) {
		return nil, invalid("tokenizer_config.json", "case and accents are folded, and Han characters set apart: other tokenizers are not run")
	}

	text, err := readFile(fsys, "vocab.txt", maxText)
	if err == nil {
		return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
	}
	if !errors.Is(err, fs.ErrNotExist) || file.Model.Vocabulary == nil {
		return nil, err
	}
	words := make([]string, len(file.Model.Vocabulary))
	for w, i := range file.Model.Vocabulary {
		if i < 0 || i >= len(words) || words[i] != "" {
			return nil, invalid("tokenizer.json: model.vocab", "the numbers of the tokens are not 0 to %d", len(words)-1)
		}
		words[i] = w
	}
	return words, nil
}

func (e *encoder) readWeights(fsys fs.FS, kinds int) error {
	b, err := readFile(fsys, "model.safetensors", maxWeights)
	if err != nil {
		return err
	}
	f, err := parseTensors(b)
	if err != nil {
		return fmt.Errorf("model.safetensors: %w", err)
	}
	r := tensors{file: f}
	if f.has("bert.embeddings.word_embeddings.weight") {
		r.prefix = "bert."
	}
	h := e.Hidden
	e.tokens = newTable(r.get("embeddings.word_embeddings.weight", e.Vocabulary, h), h)
	e.places = newTable(r.get("embeddings.position_embeddings.weight", e.Positions, h), h)
	if e.kind = r.get("embeddings.token_type_embeddings.weight", kinds, h); len(e.kind) > h {
		e.kind = e.kind[:h]
	}
	e.looked = r.normal("embeddings.LayerNorm", h)
	e.layers = make([]layer, e.Depth)
	for i := range e.layers {
		name := fmt.Sprintf("encoder.layer.%d.", i)
		e.layers[i] = layer{
			qkv:      r.matrix(h, h, name+"attention.self.query", name+"attention.self.key", name+"attention.self.value"),
			out:      r.matrix(h, h, name+"attention.output.dense"),
			attended: r.normal(name+"attention.output.LayerNorm", h),
			up:       r.matrix(h, e.Inner, name+"intermediate.dense"),
			down:     r.matrix(e.Inner, h, name+"output.dense"),
			done:     r.normal(name+"output.LayerNorm", h),
		}
	}
	if r.err != nil {
		return fmt.Errorf("model.safetensors: %w", r.err)
	}
	return nil
}

// tensors reads from a file and keeps the first error.
type tensors struct {
	file   *tensorFile
	prefix string
	err    error
}

func (r *tensors) get(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	out, err := r.file.floats(r.prefix+name, maxWeight, shape...)
	r.err = err
	return out
}

func (r *tensors) normal(name string, n int) normal {
	return normal{r.get(name+".weight", n), r.get(name+".bias", n)}
}

// matrix joins the linear layers of the names below each other.
func (r *tensors) matrix(in, out int, names ...string) (m bert.Matrix) {
	if r.err != nil {
		return m // sizes that the file does not have must not cost memory
	}
	m = newMatrix(in, out*len(names))
	for i, name := range names {
		w, b := r.get(name+".weight", out, in), r.get(name+".bias", out)
		if r.err != nil {
			return m
		}
		fill(&m, i*out, w, b)
	}
	return m
}

// table reads rows that are int8 already.
func (r *tensors) table(name string, rows, n int) table {
	return table{r.get(name+".scale", rows), r.bytes(name, rows, n)}
}

func (r *tensors) bytes(name string, shape ...int) []byte {
	if r.err != nil {
		return nil
	}
	out, err := r.file.bytes(r.prefix+name, shape...)
	r.err = err
	return out
}

// packed reads a linear layer whose rows are int8 already.
func (r *tensors) packed(in, out int, name string) (m bert.Matrix) {
	t, bias := r.table(name+".weight", out, in), r.get(name+".bias", out)
	if r.err != nil {
		return m
	}
	m = newMatrix(in, out)
	copy(m.Scale, t.scale)
	copy(m.Bias, bias)
	for o := range out {
		for i, w := range t.bytes[o*in:][:in] {
			m.Weights[m.Place(o, i)] = w
		}
	}
	return m
}

func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(name, err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, invalid(name, "not a file of at most %d bytes", limit)
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fileError(name, err)
	}
	return b, nil
}

func readJSON(fsys fs.FS, name string, into any) error {
	b, err := readFile(fsys, name, maxText)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fileError(name, err)
	}
	return nil
}

func fileError(name string, err error) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: name, Message: "cannot be read", Err: err}
}

func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
