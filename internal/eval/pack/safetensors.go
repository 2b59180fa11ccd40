package pack

// This part reads files of tensors: a length, a JSON header that says
// where each tensor lies, and the numbers. It owns the checks that make a file from
// anywhere safe to read, and nothing of what the tensors mean.

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	maxHeader  = 16 << 20
	maxTensors = 1 << 16
	maxDims    = 8
)

// tensorFile is a file of tensors. It keeps the bytes it was made of.
type tensorFile struct {
	tensors map[string]storedTensor
	data    []byte
}

type storedTensor struct {
	Type    string    `json:"dtype"`
	Shape   []int64   `json:"shape"`
	Offsets *[2]int64 `json:"data_offsets"`
}

// parseTensors checks a file and every tensor of a known type in it. Errors are
// *marchwarden.Error with CodeInvalid and the field that is wrong.
func parseTensors(b []byte) (*tensorFile, error) {
	if len(b) < 8 {
		return nil, invalid("header", "the file has %d bytes, fewer than the length of its header takes", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > maxHeader || n > uint64(len(b)) {
		return nil, invalid("header", "%d bytes, over the limit of %d or the file's %d", n, maxHeader, len(b))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b[:n], &raw); err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "header", Message: "not a JSON object", Err: err}
	}
	if len(raw) > maxTensors {
		return nil, invalid("header", "%d tensors, over %d", len(raw), maxTensors)
	}
	f := &tensorFile{tensors: make(map[string]storedTensor, len(raw)), data: b[n:]}
	delete(raw, "__metadata__")
	for _, name := range slices.Sorted(maps.Keys(raw)) { // in order, for the same error each time
		var t storedTensor
		if err := json.Unmarshal(raw[name], &t); err != nil {
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: name, Message: "not the description of a tensor", Err: err}
		}
		if err := f.check(name, t); err != nil {
			return nil, err
		}
		f.tensors[name] = t
	}
	return f, nil
}

// width is how many bytes a number of a type takes, 0 for a type that is not read.
func width(kind string) int64 {
	switch kind {
	case "F32":
		return 4
	case "F16", "BF16":
		return 2
	case "I8":
		return 1
	}
	return 0
}

func (f *tensorFile) check(name string, t storedTensor) error {
	if t.Offsets == nil {
		return invalid(name+".data_offsets", "missing")
	}
	from, to := t.Offsets[0], t.Offsets[1]
	if from < 0 || to < from || to > int64(len(f.data)) {
		return invalid(name+".data_offsets", "%d to %d is not within the %d bytes of data", from, to, len(f.data))
	}
	if len(t.Shape) > maxDims {
		return invalid(name+".shape", "%d dimensions, over %d", len(t.Shape), maxDims)
	}
	w := width(t.Type)
	if w == 0 {
		return nil // such as position numbers; asking for it is an error
	}
	size := w
	for _, d := range t.Shape {
		if d < 0 || d > 0 && size > math.MaxInt64/d {
			return invalid(name+".shape", "%v is no size", t.Shape)
		}
		size *= d
	}
	if size != to-from {
		return invalid(name+".shape", "%v of %s takes %d bytes, and %d are there", t.Shape, t.Type, size, to-from)
	}
	return nil
}

func (f *tensorFile) has(name string) bool {
	_, ok := f.tensors[name]
	return ok
}

// find gives the type and the bytes of a tensor of exactly that shape.
func (f *tensorFile) find(name string, shape []int) (kind string, data []byte, err error) {
	t, ok := f.tensors[name]
	if !ok {
		return "", nil, invalid(name, "missing")
	}
	same := len(t.Shape) == len(shape)
	for i := 0; same && i < len(shape); i++ {
		same = t.Shape[i] == int64(shape[i])
	}
	if !same {
		return "", nil, invalid(name+".shape", "%v, where the configuration asks for %v", t.Shape, shape)
	}
	return t.Type, f.data[t.Offsets[0]:t.Offsets[1]], nil
}

// bytes gives the numbers of a tensor of type I8 and of exactly that shape, in rows.
// A missing tensor, another shape or type, and a number below -127 are errors with
// CodeInvalid. The bytes are those of the file.
func (f *tensorFile) bytes(name string, shape ...int) ([]byte, error) {
	kind, data, err := f.find(name, shape)
	if err != nil {
		return nil, err
	}
	if kind != "I8" {
		return nil, invalid(name+".dtype", "%q is not I8", kind)
	}
	if i := bytes.IndexByte(data, 0x80); i >= 0 {
		return nil, invalid(name, "number %d is -128, beyond 127", i)
	}
	return data, nil
}

// floats gives the numbers of a tensor of exactly that shape, in rows. A missing
// tensor, another shape, a type that is not F32, F16 or BF16, and a number that is
// not finite or beyond limit are errors with CodeInvalid.
func (f *tensorFile) floats(name string, limit float32, shape ...int) ([]float32, error) {
	kind, data, err := f.find(name, shape)
	if err != nil {
		return nil, err
	}
	w := int(width(kind))
	if w < 2 {
		return nil, invalid(name+".dtype", "%q is not one of F32, F16 and BF16", kind)
	}
	out := make([]float32, len(data)/w)
	for i := range out {
		var v float32
		switch kind {
		case "F32":
			v = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case "F16":
			v = half(binary.LittleEndian.Uint16(data[2*i:]))
		case "BF16":
			v = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
		if !(v >= -limit && v <= limit) {
			return nil, invalid(name, "number %d is %g, beyond %g", i, v, limit)
		}
		out[i] = v
	}
	return out, nil
}

// half widens a number of 16 bits: one of sign, five of exponent, ten of mantissa.
func half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, mantissa := uint32(h>>10)&0x1F, uint32(h)&0x3FF
	switch exponent {
	case 0:
		v := float32(mantissa) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1F:
		return math.Float32frombits(sign | 0xFF<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}
