package pack

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"github.com/google/go-cmp/cmp"
)

// file lays a header before data.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestFloats(t *testing.T) {
	b := file(`{"__metadata__":{"format":"pt"},
		"f32":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},
		"f16":{"dtype":"F16","shape":[6],"data_offsets":[8,20]},
		"bf16":{"dtype":"BF16","shape":[2],"data_offsets":[20,24]},
		"ids":{"dtype":"I64","shape":[1],"data_offsets":[24,32]},
		"none":{"dtype":"F32","shape":[0,7],"data_offsets":[24,24]}}`,
		0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC1, // 1, -10
		0, 0x3C, 0, 0xC5, 1, 0, 0, 0x80, 0xFF, 0x7B, 0xFF, 0x03, // 1, -5, 2⁻²⁴, -0, 65504, the largest below normal
		0x80, 0x3F, 0x20, 0xC1,
		1, 2, 3, 4, 5, 6, 7, 8)
	f, err := parseTensors(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		shape []int
		want  []float32
	}{
		{"f32", []int{1, 2}, []float32{1, -10}},
		{"f16", []int{6}, []float32{1, -5, 0x1p-24, float32(math.Copysign(0, -1)), 65504, 1023 * 0x1p-24}},
		{"bf16", []int{2}, []float32{1, -10}},
		{"none", []int{0, 7}, []float32{}},
	} {
		got, err := f.floats(c.name, 1e6, c.shape...)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
	if !f.has("ids") || f.has("__metadata__") || f.has("other") {
		t.Error("Has is wrong")
	}
	for _, c := range []struct {
		name  string
		limit float32
		shape []int
		field string
	}{
		{"other", 1, []int{1}, "other"},
		{"f32", 100, []int{2, 1}, "f32.shape"},
		{"f32", 100, []int{2}, "f32.shape"},
		{"f32", 9, []int{1, 2}, "f32"},
		{"ids", 100, []int{1}, "ids.dtype"},
	} {
		_, err := f.floats(c.name, c.limit, c.shape...)
		wantTensorField(t, err, c.field)
	}
}

func TestBytes(t *testing.T) {
	f, err := parseTensors(file(`{"i8":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},"low":{"dtype":"I8","shape":[1],"data_offsets":[4,5]},
		"f32":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 1, 0xFF, 0x81, 0x7F, 0x80))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.bytes("i8", 2, 2)
	if diff := cmp.Diff([]byte{1, 0xFF, 0x81, 0x7F}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, c := range []struct {
		name  string
		shape []int
		field string
	}{
		{"other", []int{1}, "other"},
		{"i8", []int{4}, "i8.shape"},
		{"low", []int{1}, "low"},
		{"f32", []int{1}, "f32.dtype"},
	} {
		_, err := f.bytes(c.name, c.shape...)
		wantTensorField(t, err, c.field)
	}
	_, err = f.floats("i8", 1e6, 2, 2)
	wantTensorField(t, err, "i8.dtype")
}

func wantTensorField(t *testing.T, err error, field string) {
	t.Helper()
	var e *marchwarden.Error
	if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != field {
		t.Errorf("error %v, want one with CodeInvalid and field %q", err, field)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  []byte
		field string
	}{
		{"nothing", nil, "header"},
		{"half a length", []byte{1, 0, 0, 0}, "header"},
		{"a header beyond the file", file(`{}`)[:9], "header"},
		{"a header beyond anything", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "header"},
		{"no JSON", file(`[`), "header"},
		{"a list", file(`[]`), "header"},
		{"a tensor that is none", file(`{"x":7}`), "x"},
		{"no offsets", file(`{"x":{"dtype":"F32","shape":[]}}`), "x.data_offsets"},
		{"offsets backwards", file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 1, 2, 3, 4), "x.data_offsets"},
		{"offsets below", file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 1, 2, 3, 4), "x.data_offsets"},
		{"offsets beyond", file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`, 1, 2, 3, 4), "x.data_offsets"},
		{"another size", file(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "x.shape"},
		{"below nothing", file(`{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "x.shape"},
		{"more than can be", file(`{"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`), "x.shape"},
		{"too many dimensions", file(`{"x":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "x.shape"},
		{"first of two in order", file(`{"y":1,"x":2}`), "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseTensors(c.file)
			wantTensorField(t, err, c.field)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Add(file(`{"x":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"__metadata__":{}}`, 1, 2, 3, 4))
	f.Add([]byte(strings.Repeat("\xff", 20)))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parseTensors(b)
		if err != nil {
			if marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
				t.Fatalf("%v is %s", err, marchwarden.CodeOf(err))
			}
			return
		}
		for name, tensor := range file.tensors {
			var shape []int
			for _, d := range tensor.Shape {
				shape = append(shape, int(d))
			}
			if _, err := file.floats(name, 1e30, shape...); err != nil && marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
				t.Fatal(err)
			}
		}
	})
}
