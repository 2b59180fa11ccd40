package bundle

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Earlier versions could sign a bundle. Such a signature must hold.

// PublicKey tells who signed. It is a comparable value.
type PublicKey [ed25519.PublicKeySize]byte

// Fingerprint names the key: the SHA-256 of its PKIX form, as
// "openssl pkey -pubin -outform DER | sha256sum" gives it.
func (p PublicKey) Fingerprint() string {
	der, _ := x509.MarshalPKIXPublicKey(ed25519.PublicKey(p[:])) // any 32 bytes can be encoded
	return fmt.Sprintf("sha256:%x", sha256.Sum256(der))
}

// Signature is who signed a bundle and when, by their own clock.
type Signature struct {
	By       PublicKey
	SignedAt time.Time
	Comment  string
}

// signatureFile is signature-ed25519.json.
type signatureFile struct {
	Format    int       `json:"format"`
	PublicKey string    `json:"public_key"` // 32 bytes, in hex
	Signature string    `json:"signature"`  // 64 bytes, in hex
	SignedAt  time.Time `json:"signed_at"`
	Comment   string    `json:"comment"`
}

// message is what is signed: a hash over all that the signature vouches for. The
// tag manifest vouches for the rest of the bundle.
func (s Signature) message(tags []byte) []byte {
	h := sha256.New()
	digest := sha256.Sum256(tags)
	for _, part := range [][]byte{[]byte("marchwarden bundle signature 1"), digest[:], s.By[:],
		[]byte(s.SignedAt.Format(time.RFC3339Nano)), []byte(s.Comment)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// file is signature-ed25519.json with the given signature.
func (s Signature) file(sum []byte) ([]byte, error) {
	return durable.EncodeJSON(signatureFile{Format: 1, PublicKey: hex.EncodeToString(s.By[:]), Signature: hex.EncodeToString(sum), SignedAt: s.SignedAt, Comment: s.Comment}, "  ")
}

// readSignature reads a signature and checks it. It has one right spelling.
func readSignature(data, tags []byte) (Signature, error) {
	var f signatureFile
	if err := json.Unmarshal(data, &f); err != nil {
		return Signature{}, fmt.Errorf("cannot be read: %w", err)
	}
	if f.Format != 1 {
		return Signature{}, fmt.Errorf("is of format %d; this program reads format 1", f.Format)
	}
	s := Signature{SignedAt: f.SignedAt, Comment: f.Comment}
	by, err := hex.DecodeString(f.PublicKey)
	if err != nil || len(by) != len(s.By) {
		return Signature{}, errors.New("holds no public key")
	}
	s.By = PublicKey(by)
	sum, err := hex.DecodeString(f.Signature)
	if err != nil || len(sum) != ed25519.SignatureSize || !ed25519.Verify(by, s.message(tags), sum) {
		return Signature{}, fmt.Errorf("does not hold: it was not made with %s over this bundle", s.By.Fingerprint())
	}
	if again, err := s.file(sum); err != nil || !bytes.Equal(again, data) {
		return Signature{}, errors.New("is not written as this program writes it")
	}
	return s, nil
}
