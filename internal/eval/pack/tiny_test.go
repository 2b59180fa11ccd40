package pack

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tensor is one of a model that a test writes.
type tensor struct {
	name  string
	shape []int
	data  []float32
}

// The sizes of the tiny model.
const (
	tinyHidden, tinyHeads, tinyInner, tinyDepth = 64, 2, 96, 3
	tinyPlaces                                  = 12
)

var tinyWords = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "##s", "ran", "on", "mat", ".", "café", "A"}

// tinyTensors draws the weights of a small model, all of them different.
func tinyTensors(prefix string) []tensor {
	rnd := rand.New(rand.NewPCG(11, 12))
	var all []tensor
	add := func(name string, around, spread float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := tensor{prefix + name, shape, make([]float32, n)}
		for i := range t.data {
			t.data[i] = float32(around + spread*rnd.NormFloat64())
		}
		all = append(all, t)
	}
	linear := func(name string, in, out int) {
		add(name+".weight", 0, 1/math.Sqrt(float64(in)), out, in)
		add(name+".bias", 0, 0.1, out)
	}
	norm := func(name string) {
		add(name+".weight", 1, 0.1, tinyHidden)
		add(name+".bias", 0, 0.1, tinyHidden)
	}
	add("embeddings.word_embeddings.weight", 0, 1, len(tinyWords), tinyHidden)
	add("embeddings.position_embeddings.weight", 0, 0.5, tinyPlaces, tinyHidden)
	add("embeddings.token_type_embeddings.weight", 0, 0.5, 2, tinyHidden)
	norm("embeddings.LayerNorm")
	for i := range tinyDepth {
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		for _, part := range []string{"query", "key", "value"} {
			linear(layer+"attention.self."+part, tinyHidden, tinyHidden)
		}
		linear(layer+"attention.output.dense", tinyHidden, tinyHidden)
		norm(layer + "attention.output.LayerNorm")
		linear(layer+"intermediate.dense", tinyHidden, tinyInner)
		linear(layer+"output.dense", tinyInner, tinyHidden)
		norm(layer + "output.LayerNorm")
	}
	return all
}

// encode writes tensors as a file of safetensors.
func encode(t testing.TB, kind string, tensors []tensor) []byte {
	t.Helper()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, x := range tensors {
		from := len(data)
		for _, v := range x.data {
			switch kind {
			case "F32":
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, toHalf(v))
			}
		}
		header[x.name] = map[string]any{"dtype": kind, "shape": x.shape, "data_offsets": []int{from, len(data)}}
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	return append(append(b, h...), data...)
}

// toHalf cuts a number of middling size to 16 bits.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	exponent := int(b>>23&0xFF) - 127 + 15
	if exponent <= 0 {
		return uint16(b >> 31 << 15)
	}
	return uint16(b>>31<<15) | uint16(exponent<<10) | uint16(b>>13&0x3FF)
}

// folder is the tiny model as it would lie on a disk, with further files or
// replacements; an empty one is left out.
func folder(t testing.TB, more map[string]string) fstest.MapFS {
	t.Helper()
	files := map[string]string{
		"config.json": fmt.Sprintf(`{"model_type":"bert","hidden_act":"gelu","hidden_size":%d,"num_attention_heads":%d,"intermediate_size":%d,
			"num_hidden_layers":%d,"vocab_size":%d,"max_position_embeddings":%d,"type_vocab_size":2,"layer_norm_eps":1e-12}`,
			tinyHidden, tinyHeads, tinyInner, tinyDepth, len(tinyWords), tinyPlaces),
		"vocab.txt": strings.Join(tinyWords, "\n") + "\n",
	}
	for name, text := range more {
		files[name] = text
	}
	if _, ok := files["model.safetensors"]; !ok {
		files["model.safetensors"] = string(encode(t, "F32", tinyTensors("")))
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		if text != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return fsys
}

// slowVector is the forward pass in float64, written for reading.
func slowVector(tensors []tensor, ids []int) []float64 {
	get := func(name string) []float32 {
		return tensors[slices.IndexFunc(tensors, func(t tensor) bool { return t.name == name })].data
	}
	const h = tinyHidden
	linear := func(x [][]float64, name string, out int) [][]float64 {
		w, b := get(name+".weight"), get(name+".bias")
		var y [][]float64
		for _, row := range x {
			r := make([]float64, out)
			for o := range r {
				r[o] = float64(b[o])
				for i, v := range row {
					r[o] += v * float64(w[o*len(row)+i])
				}
			}
			y = append(y, r)
		}
		return y
	}
	norm := func(x [][]float64, name string) {
		gain, shift := get(name+".weight"), get(name+".bias")
		for _, row := range x {
			var mean, square float64
			for _, v := range row {
				mean += v / h
			}
			for _, v := range row {
				square += (v - mean) * (v - mean) / h
			}
			for i, v := range row {
				row[i] = (v-mean)/math.Sqrt(square+1e-12)*float64(gain[i]) + float64(shift[i])
			}
		}
	}
	add := func(x, y [][]float64) {
		for t := range x {
			for i := range x[t] {
				x[t][i] += y[t][i]
			}
		}
	}
	var x [][]float64
	for t, id := range ids {
		row := make([]float64, h)
		for i := range row {
			row[i] = float64(get("embeddings.word_embeddings.weight")[id*h+i]) + float64(get("embeddings.position_embeddings.weight")[t*h+i]) +
				float64(get("embeddings.token_type_embeddings.weight")[i])
		}
		x = append(x, row)
	}
	norm(x, "embeddings.LayerNorm")
	for l := range tinyDepth {
		name := fmt.Sprintf("encoder.layer.%d.", l)
		q, k, v := linear(x, name+"attention.self.query", h), linear(x, name+"attention.self.key", h), linear(x, name+"attention.self.value", h)
		add(x, linear(slowAttention(q, k, v), name+"attention.output.dense", h))
		norm(x, name+"attention.output.LayerNorm")
		wide := linear(x, name+"intermediate.dense", tinyInner)
		for _, row := range wide {
			for i, v := range row {
				row[i] = 0.5 * v * (1 + math.Erf(v/math.Sqrt2))
			}
		}
		add(x, linear(wide, name+"output.dense", h))
		norm(x, name+"output.LayerNorm")
	}
	out := x[0]
	for _, row := range x[1:] {
		add([][]float64{out}, [][]float64{row})
	}
	return out
}

func slowAttention(q, k, v [][]float64) [][]float64 {
	size := tinyHidden / tinyHeads
	var out [][]float64
	for t := range q {
		row := make([]float64, tinyHidden)
		for head := 0; head < tinyHidden; head += size {
			var sum float64
			weights := make([]float64, len(k))
			for s := range k {
				var dot float64
				for i := head; i < head+size; i++ {
					dot += q[t][i] * k[s][i]
				}
				weights[s] = math.Exp(dot / math.Sqrt(float64(size)))
				sum += weights[s]
			}
			for s := range v {
				for i := head; i < head+size; i++ {
					row[i] += weights[s] / sum * v[s][i]
				}
			}
		}
		out = append(out, row)
	}
	return out
}

func cosine(a []float32, b []float64) float64 {
	var dot, aa, bb float64
	for i, v := range a {
		dot += float64(v) * b[i]
		aa += float64(v) * float64(v)
		bb += b[i] * b[i]
	}
	return dot / math.Sqrt(aa*bb)
}
