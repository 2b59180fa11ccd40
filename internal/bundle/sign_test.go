package bundle

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"strings"
	"testing"
)

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func publicOf(seed byte) PublicKey {
	return PublicKey(keyOf(seed).Public().(ed25519.PublicKey))
}

// signature is the file of a signature over a tag manifest, as earlier versions wrote it.
func signature(t testing.TB, seed byte, tags []byte) []byte {
	t.Helper()
	s := Signature{By: publicOf(seed), SignedAt: when, Comment: "as I saw it"}
	file, err := s.file(ed25519.Sign(keyOf(seed), s.message(tags)))
	check(t, err)
	return file
}

// signed is a bundle with a signature over it.
func signed(t testing.TB, data []byte, seed byte) []byte {
	t.Helper()
	b, err := open(data)
	check(t, err)
	tags, err := b.read(tagsName)
	check(t, err)
	return rebuilt(t, b, signatureName, signature(t, seed, tags))
}

// A signature must hold by whatever key it was made.
func TestSignature(t *testing.T) {
	data := pack(t)
	if found := problems(t, signed(t, data, 2)); found != nil {
		t.Error(found)
	}
	b, err := open(data)
	check(t, err)
	bad := rebuilt(t, b, signatureName, signature(t, 1, []byte("another")))
	if found := problems(t, bad); len(found) != 1 || !strings.Contains(found[0], "was not made with "+publicOf(1).Fingerprint()) {
		t.Errorf("found %q", found)
	}
}

// A signature holds for one bundle, one time and one comment, in one spelling.
func TestSignatureIsExact(t *testing.T) {
	tags := []byte("the tag manifest")
	file := signature(t, 1, tags)
	if _, err := readSignature(file, tags); err != nil {
		t.Fatal(err)
	}
	if _, err := readSignature(file, []byte("another")); err == nil {
		t.Error("it holds for another bundle")
	}
	public := publicOf(1)
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
