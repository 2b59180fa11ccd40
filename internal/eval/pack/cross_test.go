package pack

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"github.com/google/go-cmp/cmp"
)

// tinyCross writes layers for the tiny model as tools/reader/train.py does: matrices
// as int8 by row, each with its scale. The names that are left out are missing.
func tinyCross(t testing.TB, leftOut ...string) []byte {
	t.Helper()
	rnd := rand.New(rand.NewPCG(13, 14))
	header, data := map[string]any{}, []byte(nil)
	put := func(name, kind string, b []byte, shape ...int) {
		if !slices.Contains(leftOut, name) {
			header[name] = map[string]any{"dtype": kind, "shape": shape, "data_offsets": []int{len(data), len(data) + len(b)}}
			data = append(data, b...)
		}
	}
	floats := func(name string, around, spread float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		var b []byte
		for range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(around+spread*rnd.NormFloat64())))
		}
		put(name, "F32", b, shape...)
	}
	rows := func(name string, out, in int) {
		b := make([]byte, in*out)
		for i := range b {
			b[i] = byte(int8(rnd.IntN(255) - 127))
		}
		put(name, "I8", b, out, in)
		floats(name+".scale", 0.01/math.Sqrt(float64(in)), 0, out)
	}
	linear := func(name string, in, out int) {
		rows(name+".weight", out, in)
		floats(name+".bias", 0, 0.1, out)
	}
	norm := func(name string) {
		floats(name+".weight", 1, 0.1, tinyHidden)
		floats(name+".bias", 0, 0.1, tinyHidden)
	}
	rows("pos.weight", tinyPlaces, tinyHidden)
	floats("typ.weight", 0, 0.5, 2, tinyHidden)
	norm("n0")
	for i := range tinyDepth {
		layer := fmt.Sprintf("layers.%d.", i)
		linear(layer+"qkv", tinyHidden, 3*tinyHidden)
		linear(layer+"out", tinyHidden, tinyHidden)
		norm(layer + "n1")
		linear(layer+"up", tinyHidden, tinyInner)
		linear(layer+"down", tinyInner, tinyHidden)
		norm(layer + "n2")
	}
	linear("pool", tinyHidden, tinyHidden)
	for name, n := range map[string]int{"nli": 3, "ans": 1, "rel": 1, "span": 2} {
		floats(name+".weight", 0, 0.1, n, tinyHidden)
		floats(name+".bias", 0, 0.1, n)
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), data...)
}

// TestCross: a packed model runs, both texts and their order matter, and every kernel
// says the same. That it says what the network in floats says is tested in reader.
func TestCross(t *testing.T) {
	embedder, words, err := Vectors(folder(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Reader(tinyCross(t), embedder, 10)
	if err != nil {
		t.Fatal(err)
	}
	c := bert.OpenCross(packed, embedder, words)
	if begin, end := c.Words().Ends(); begin != 2 || end != 3 {
		t.Errorf("begins with %d, ends with %d", begin, end)
	}
	ids := []int32{2, 5, 6, 3, 5, 7, 3}
	first := c.Run(ids, 4)
	if len(first.Start) != len(ids) || len(first.End) != len(ids) {
		t.Fatalf("%d starts and %d ends", len(first.Start), len(first.End))
	}
	for _, k := range bert.Kernels() {
		if diff := cmp.Diff(first, c.With(k).Run(ids, 4)); diff != "" {
			t.Errorf("%s (-best +got):\n%s", k.Name, diff)
		}
	}
	for name, other := range map[string]bert.Scores{
		"where the second begins": c.Run(ids, 5),
		"the second text":         c.Run([]int32{2, 5, 6, 3, 5, 8, 3}, 4),
		"the first text":          c.Run([]int32{2, 5, 10, 3, 5, 7, 3}, 4),
	} {
		if cmp.Equal(first, other) {
			t.Errorf("%s does not matter", name)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	embedder, _, err := Vectors(folder(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pos.weight", "pos.weight.scale", "typ.weight", "layers.2.up.weight.scale", "pool.bias", "span.weight"} {
		_, err := Reader(tinyCross(t, name), embedder, 10)
		wantField(t, err, name)
	}
	_, err = Reader(tinyCross(t), embedder, tinyPlaces+1)
	wantField(t, err, "max_seq_length")
	_, err = Reader([]byte("not weights at all"), embedder, 10)
	wantField(t, err, "header")
}
