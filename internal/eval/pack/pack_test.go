package pack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"github.com/google/go-cmp/cmp"
)

func load(t testing.TB, fsys fstest.MapFS) embed.Embedder {
	t.Helper()
	packed, words, err := Vectors(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return bert.Open("tiny/1", packed, words)
}

func vectors(t testing.TB, e embed.Embedder, texts ...string) []embed.Vector {
	t.Helper()
	vs, err := e.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

const meanPooling = `{"word_embedding_dimension":64,"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true}`

// TestVectors compares models of folders with the forward pass in float64.
func TestVectors(t *testing.T) {
	tokenizer := `{"normalizer":{"lowercase":true,"strip_accents":null,"handle_chinese_chars":true},"model":{"type":"WordPiece","vocab":{`
	for i, w := range tinyWords {
		tokenizer += fmt.Sprintf("%q:%d,", w, i)
	}
	tokenizer = strings.TrimSuffix(tokenizer, ",") + "}}}"
	sentence, ids := "The cats sat on the mat.", []int{2, 5, 6, 9, 8, 11, 5, 12, 13, 3}
	for _, c := range []struct {
		name  string
		files map[string]string
		text  string
		ids   []int
		least float64
	}{
		{"mean by default", nil, sentence, ids, 0.9995},
		{"an even number of tokens and an odd one", nil, "dog", []int{2, 7, 3}, 0.9995},
		{"nothing", nil, "", []int{2, 3}, 0.9995},
		{"mean", map[string]string{"1_Pooling/config.json": meanPooling}, sentence, ids, 0.9995},
		{"tokenizer.json", map[string]string{"vocab.txt": "", "tokenizer.json": tokenizer}, sentence, ids, 0.9995},
		{"a window", map[string]string{"sentence_bert_config.json": `{"max_seq_length":6}`}, sentence, []int{2, 5, 6, 9, 8, 3}, 0.9995},
		{"no window beyond the positions", map[string]string{"sentence_bert_config.json": `{"max_seq_length":512}`}, strings.Repeat("cat ", 99),
			[]int{2, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 3}, 0.9995},
		{"names with a prefix", map[string]string{"model.safetensors": string(encode(t, "F32", tinyTensors("bert.")))}, sentence, ids, 0.9995},
		{"F16", map[string]string{"model.safetensors": string(encode(t, "F16", tinyTensors("")))}, sentence, ids, 0.999},
		{"BF16", map[string]string{"model.safetensors": string(encode(t, "BF16", tinyTensors("")))}, sentence, ids, 0.99},
		{"modules", map[string]string{"modules.json": `[{"type":"sentence_transformers.models.Transformer"},{"type":"sentence_transformers.models.Pooling"},{"type":"sentence_transformers.models.Normalize"}]`},
			sentence, ids, 0.9995},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := vectors(t, load(t, folder(t, c.files)), c.text)[0]
			if got := cosine(v, slowVector(tinyTensors(""), c.ids)); got < c.least {
				t.Errorf("cosine with the slow way is %.6f, below %g", got, c.least)
			}
			if n := v.Dot(v); n < 0.99999 || n > 1.00001 {
				t.Errorf("length² is %g", n)
			}
		})
	}
}

// TestEmbedAlone holds that a text has one vector, whatever it is embedded with, and whatever is
// embedded at the same time.
func TestEmbedAlone(t *testing.T) {
	e := load(t, folder(t, nil))
	if e.ID() != "tiny/1" {
		t.Error(e.ID())
	}
	texts := []string{"the cat sat on the mat.", "dog", "", "the dogs ran", "cats"}
	want := vectors(t, e, texts...)
	var all sync.WaitGroup
	for i, text := range texts {
		all.Go(func() {
			for range 20 {
				got, err := e.Embed(context.Background(), []string{text, texts[0]})
				if diff := cmp.Diff([]embed.Vector{want[i], want[0]}, got); err != nil || diff != "" {
					t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
				}
			}
		})
	}
	all.Wait()
}

func TestEmbedStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if vs, err := load(t, folder(t, nil)).Embed(ctx, []string{"the", "cat"}); vs != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", vs, err)
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var e *marchwarden.Error
	if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != field {
		t.Errorf("error %v, want one with CodeInvalid and field %q", err, field)
	}
}

// change replaces a part of the tiny config.
func change(t *testing.T, old, new string) map[string]string {
	text := string(folder(t, nil)["config.json"].Data)
	if !strings.Contains(text, old) {
		t.Fatalf("no %s in the configuration", old)
	}
	return map[string]string{"config.json": strings.Replace(text, old, new, 1)}
}

func TestVectorsRefuses(t *testing.T) {
	wrong := tinyTensors("")
	wrong[5].data[7] = 1e9
	for _, c := range []struct {
		name  string
		files map[string]string
		field string
	}{
		{"no configuration", map[string]string{"config.json": ""}, "config.json"},
		{"a configuration that is no JSON", map[string]string{"config.json": "{"}, "config.json"},
		{"another family", change(t, `"bert"`, `"mpnet"`), "config.json: model_type"},
		{"another activation", change(t, `"gelu"`, `"relu"`), "config.json: hidden_act"},
		{"no size", change(t, `"hidden_size":64`, `"hidden_size":0`), "hidden_size"},
		{"an odd size", change(t, `"hidden_size":64`, `"hidden_size":66`), "hidden_size"},
		{"no heads", change(t, `"num_attention_heads":2`, `"num_attention_heads":0`), "num_attention_heads"},
		{"too many heads", change(t, `"num_attention_heads":2`, `"num_attention_heads":8`), "num_attention_heads"},
		{"too many layers", change(t, `"num_hidden_layers":3`, `"num_hidden_layers":4`), "encoder.layer.3.attention.self.query.weight"},
		{"more layers than can be", change(t, `"num_hidden_layers":3`, `"num_hidden_layers":1000000`), "num_hidden_layers"},
		{"another width", change(t, `"intermediate_size":96`, `"intermediate_size":112`), "encoder.layer.0.intermediate.dense.weight.shape"},
		{"a vocabulary beyond memory", change(t, `"vocab_size":16`, `"vocab_size":900000000`), "vocab_size"},
		{"a bad eps", change(t, `1e-12`, `-1`), "layer_norm_eps"},
		{"no weights", map[string]string{"model.safetensors": ""}, "model.safetensors"},
		{"weights that are none", map[string]string{"model.safetensors": "not weights at all"}, "header"},
		{"a tensor that is missing", map[string]string{"model.safetensors": string(encode(t, "F32", tinyTensors("")[1:]))}, "embeddings.word_embeddings.weight"},
		{"a number beyond all", map[string]string{"model.safetensors": string(encode(t, "F32", wrong))}, wrong[5].name},
		{"no words", map[string]string{"vocab.txt": ""}, "vocab.txt"},
		{"too many words", map[string]string{"vocab.txt": strings.Join(tinyWords, "\n") + "\nmore"}, "vocabulary"},
		{"words without marks", map[string]string{"vocab.txt": "a\nb\nc\n"}, "vocabulary"},
		{"another kind of tokenizer", map[string]string{"tokenizer.json": `{"model":{"type":"BPE"}}`}, "tokenizer.json: model.type"},
		{"words with gaps", map[string]string{"vocab.txt": "", "tokenizer.json": `{"model":{"vocab":{"a":1}}}`}, "tokenizer.json: model.vocab"},
		{"another pooling", map[string]string{"1_Pooling/config.json": `{"pooling_mode_max_tokens":true}`}, "1_Pooling/config.json"},
		{"the first token", map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token":true}`}, "1_Pooling/config.json"},
		{"a cased model", map[string]string{"tokenizer_config.json": `{"do_lower_case":false}`}, "tokenizer_config.json"},
		{"a module that is not run", map[string]string{"modules.json": `[{"type":"sentence_transformers.models.Dense"}]`}, "modules.json"},
		{"a window of one", map[string]string{"sentence_bert_config.json": `{"max_seq_length":1}`}, "max_seq_length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			packed, _, err := Vectors(folder(t, c.files))
			if packed != nil {
				t.Error("packed all the same")
			}
			wantField(t, err, c.field)
		})
	}
	t.Run("a folder where a file should be", func(t *testing.T) {
		fsys := folder(t, map[string]string{"model.safetensors": ""})
		fsys["model.safetensors/x"] = &fstest.MapFile{}
		_, _, err := Vectors(fsys)
		wantField(t, err, "model.safetensors")
	})
}

// Sizes that a configuration merely claims cost no memory.
func TestClaimedSizesAreFree(t *testing.T) {
	config := change(t, `"intermediate_size":96`, `"intermediate_size":16384`)["config.json"]
	config = strings.Replace(config, `"hidden_size":64`, `"hidden_size":4096`, 1)
	config = strings.Replace(config, `"num_hidden_layers":3`, `"num_hidden_layers":48`, 1)
	fsys := folder(t, map[string]string{"config.json": config})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Vectors(fsys)
	runtime.ReadMemStats(&after)
	wantField(t, err, "embeddings.word_embeddings.weight.shape")
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes for a model that is not there", took)
	}
}
