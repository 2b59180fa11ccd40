package bundle

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestKeys(t *testing.T) {
	k := key(t, 1)
	private, public := k.PEM(), k.Public().PEM()
	if got, err := ParseKey(private); err != nil || got.Public() != k.Public() {
		t.Errorf("ParseKey: %v", err)
	}
	if got, err := ParsePublicKey(public); err != nil || got != k.Public() {
		t.Errorf("ParsePublicKey: %v", err)
	}
	if f := k.Public().Fingerprint(); len(f) != len("sha256:")+64 || f == key(t, 2).Public().Fingerprint() {
		t.Errorf("Fingerprint = %s", f)
	}
	const rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJB\n-----END PUBLIC KEY-----\n"
	for _, tt := range []struct {
		data []byte
		want string
	}{
		{nil, "holds no key in PEM"}, {[]byte("hello"), "holds no key in PEM"}, {append(public, public...), "more than one key"}, {private, `holds "PRIVATE KEY"`}, {[]byte(rsa), "no Ed25519 key"},
	} {
		if _, err := ParsePublicKey(tt.data); !errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParsePublicKey(%.30q): %v, want %q", tt.data, err, tt.want)
		}
	}
	if _, err := ParseKey(public); !errors.Is(err, marchwarden.CodeInvalid) || marchwarden.HintOf(err) == "" {
		t.Errorf("ParseKey of a public key: %v", err)
	}
	if _, err := NewKey(strings.NewReader("short")); err == nil {
		t.Error("a key of five bytes")
	}
}

func TestSignature(t *testing.T) {
	mine, other := key(t, 1), key(t, 2)
	signed, plain := pack(t, Options{Sign: &mine}), pack(t, Options{})
	for _, tt := range []struct {
		what string
		data []byte
		by   []PublicKey
		want string
	}{
		{"signed, by whoever", signed, nil, ""},
		{"signed by the one", signed, []PublicKey{mine.Public()}, ""},
		{"signed by one of them", signed, []PublicKey{other.Public(), mine.Public()}, ""},
		{"signed by another", signed, []PublicKey{other.Public()}, "is none of the keys that were given"},
		{"unsigned", plain, nil, ""},
		{"unsigned where it must be", plain, []PublicKey{mine.Public()}, "the bundle is not signed"},
	} {
		found := strings.Join(problems(t, tt.data, tt.by...), "\n")
		if tt.want == "" && found != "" || !strings.Contains(found, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, found, tt.want)
		}
	}
	b, err := open(plain)
	check(t, err)
	if r, err := b.Verify(context.Background()); err != nil || r.Signature != nil {
		t.Errorf("nobody signed it: %+v, %v", r.Signature, err)
	}
}

// A signature holds for one bundle, one time and one comment, in one spelling.
func TestSignatureIsExact(t *testing.T) {
	k := key(t, 1)
	tags := []byte("the tag manifest")
	file, err := k.sign(tags, when, "as I saw it")
	check(t, err)
	if _, err := readSignature(file, tags); err != nil {
		t.Fatal(err)
	}
	if _, err := readSignature(file, []byte("another")); err == nil {
		t.Error("it holds for another bundle")
	}
	public := k.Public()
	for _, change := range [][2]string{{"as I saw it", "as he saw it"}, {"2026", "2027"}, {"{\n", "{ \n"}, {`"format": 1`, `"format": 2`},
		{`"comment"`, `"Comment"`}, {"Z\"", "+00:00\""}, {"\n}", ",\n  \"more\": 1\n}"}, {hex.EncodeToString(public[:]), strings.ToUpper(hex.EncodeToString(public[:]))}} {
		changed := bytes.Replace(file, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, file) {
			t.Fatalf("%q is not in %s", change[0], file)
		}
		if _, err := readSignature(changed, tags); err == nil {
			t.Errorf("%q for %q: it holds", change[1], change[0])
		}
	}
}
