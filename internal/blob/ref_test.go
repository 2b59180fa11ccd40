package blob_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestRefForms(t *testing.T) {
	ref := blob.Of(nil)
	if got, want := ref.String(), "sha256:"+emptySum; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if got := ref.Hex(); got != emptySum {
		t.Errorf("Hex = %q, want %q", got, emptySum)
	}
	if got, err := blob.Parse("sha256:" + emptySum); got != ref || err != nil {
		t.Errorf("Parse = %v, %v, want %v", got, err, ref)
	}
	if !ref.Valid() {
		t.Error("the Ref of empty content is not valid")
	}
}

func TestParseRejects(t *testing.T) {
	for name, s := range map[string]string{
		"empty":          "",
		"no algorithm":   emptySum,
		"other name":     "sha257:" + emptySum,
		"upper case":     "sha256:" + strings.ToUpper(emptySum),
		"short":          "sha256:" + emptySum[1:],
		"long":           "sha256:" + emptySum + "0",
		"not hex":        "sha256:" + emptySum[1:] + "g",
		"trailing space": "sha256:" + emptySum[1:] + " ",
		"path":           "sha256:" + strings.Repeat("../", 21) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			ref, err := blob.Parse(s)
			if !errors.Is(err, blob.ErrInvalidRef) || ref.Valid() {
				t.Errorf("Parse(%q) = %v, %v, want the zero Ref and ErrInvalidRef", s, ref, err)
			}
		})
	}
}

// A digest of all zero bits is a digest like any other; the zero Ref is none.
func TestZeroRefIsNotTheZeroDigest(t *testing.T) {
	zeros, err := blob.Parse("sha256:" + strings.Repeat("0", 64))
	if err != nil || !zeros.Valid() || (blob.Ref{}).Valid() || zeros == (blob.Ref{}) {
		t.Error("the zero digest and the zero Ref are mixed up")
	}
	if zeros.Compare(blob.Ref{}) <= 0 || (blob.Ref{}).Compare(zeros) >= 0 {
		t.Error("the zero Ref does not come first")
	}
	if got := (blob.Ref{}).String() + (blob.Ref{}).Hex(); got != "" {
		t.Errorf("the zero Ref prints as %q, want nothing", got)
	}
}

func TestRefInJSON(t *testing.T) {
	type doc struct{ Raw, Text blob.Ref }
	in := doc{Raw: blob.Of([]byte("page"))}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"Raw":"` + in.Raw.String() + `","Text":""}`; string(data) != want {
		t.Errorf("Marshal = %s, want %s", data, want)
	}
	out := doc{Text: blob.Of([]byte("overwritten by the empty text"))}
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Errorf("Unmarshal = %v, %v, want %v", out, err, in)
	}
	ref := in.Raw
	if err := ref.UnmarshalText([]byte("bad")); !errors.Is(err, blob.ErrInvalidRef) || ref != in.Raw {
		t.Errorf("UnmarshalText of nonsense: %v, error %v, want it unchanged and ErrInvalidRef", ref, err)
	}
}

func TestRefOrderIsStringOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := blob.Of(rapid.SliceOf(rapid.Byte()).Draw(t, "a"))
		b := blob.Of(rapid.SliceOf(rapid.Byte()).Draw(t, "b"))
		if got, want := a.Compare(b), strings.Compare(a.String(), b.String()); got != want {
			t.Fatalf("Compare = %d, strings compare %d", got, want)
		}
		if back, err := blob.Parse(a.String()); err != nil || back != a {
			t.Fatalf("Parse(%s) = %v, %v", a, back, err)
		}
	})
}
