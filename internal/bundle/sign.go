package bundle

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Key signs bundles. The zero Key signs nothing.
type Key struct{ private ed25519.PrivateKey }

// PublicKey tells who signed. It is a comparable value; the zero one has no signer.
type PublicKey [ed25519.PublicKeySize]byte

// NewKey makes a key pair from random bytes.
func NewKey(random io.Reader) (Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return Key{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a key")
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Public is the half that others may have.
func (k Key) Public() PublicKey { return PublicKey(k.private.Public().(ed25519.PublicKey)) }

// keyForm is how one half of a key stands in a file: in PEM, which openssl reads.
type keyForm struct{ block, name, hint string }

var (
	privateForm = keyForm{"PRIVATE KEY", "PKCS #8", "give the private key, the file whose name does not end in .pub"}
	publicForm  = keyForm{"PUBLIC KEY", "PKIX", "give the public key, the file whose name ends in .pub"}
)

// PEM is the private key as PKCS #8 in PEM.
func (k Key) PEM() []byte { return privateForm.encode(x509.MarshalPKCS8PrivateKey(k.private)) }

// PEM is the key as PKIX in PEM.
func (p PublicKey) PEM() []byte { return publicForm.encode(p.der()) }

func (p PublicKey) der() ([]byte, error) { return x509.MarshalPKIXPublicKey(ed25519.PublicKey(p[:])) }

func (f keyForm) encode(der []byte, err error) []byte {
	if err != nil {
		panic(err) // unreachable: every Ed25519 key can be encoded
	}
	return pem.EncodeToMemory(&pem.Block{Type: f.block, Bytes: der})
}

// Fingerprint names the key: the SHA-256 of its PKIX form, as
// "openssl pkey -pubin -outform DER | sha256sum" gives it.
func (p PublicKey) Fingerprint() string {
	der, _ := p.der() // any 32 bytes can be encoded
	return fmt.Sprintf("sha256:%x", sha256.Sum256(der))
}

// ParseKey reads what Key.PEM writes. Its errors are CodeInvalid and hold nothing
// of the key.
func ParseKey(data []byte) (Key, error) {
	key, err := parseKey[ed25519.PrivateKey](privateForm, data, x509.ParsePKCS8PrivateKey)
	return Key{key}, err
}

// ParsePublicKey reads what PublicKey.PEM writes. Its errors are CodeInvalid.
func ParsePublicKey(data []byte) (public PublicKey, err error) {
	key, err := parseKey[ed25519.PublicKey](publicForm, data, x509.ParsePKIXPublicKey)
	copy(public[:], key)
	return public, err
}

// parseKey reads the key in the one PEM block of a file, which must be of a form.
func parseKey[K any](f keyForm, data []byte, parse func([]byte) (any, error)) (key K, err error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return key, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "it holds no key in PEM", Hint: f.hint}
	case block.Type != f.block:
		return key, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("it holds %q, not %q", block.Type, f.block), Hint: f.hint}
	case len(bytes.TrimSpace(rest)) > 0:
		return key, marchwarden.Errorf(marchwarden.CodeInvalid, "it holds more than one key")
	}
	parsed, err := parse(block.Bytes)
	key, ok := parsed.(K)
	if !ok || err != nil {
		return key, marchwarden.Errorf(marchwarden.CodeInvalid, "it holds no Ed25519 key in %s", f.name)
	}
	return key, nil
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

func (k Key) sign(tags []byte, at time.Time, comment string) ([]byte, error) {
	s := Signature{By: k.Public(), SignedAt: at.UTC().Truncate(time.Second), Comment: comment}
	return s.file(ed25519.Sign(k.private, s.message(tags)))
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

// PublicSuffix ends the name of the file with the public half of a key.
const PublicSuffix = ".pub"

// maxKeyBytes bounds a file with a key.
const maxKeyBytes = 64 << 10

// badFile is the error of a file that cannot be used; field names the option that it comes from.
func badFile(field, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// MakeKeyFiles makes a pair of keys from random bytes in two new files, path and path with
// PublicSuffix, and their folder for the user alone if it is missing. CodeInvalid names the field
// if a file exists or cannot be made.
func MakeKeyFiles(field, path string, random io.Reader) (PublicKey, error) {
	for _, name := range []string{path, path + PublicSuffix} {
		if _, err := os.Lstat(name); err == nil {
			return PublicKey{}, badFile(field, "give another name: a key that is lost cannot be made again", "%q exists", name)
		}
	}
	key, err := NewKey(random)
	if err != nil {
		return PublicKey{}, err
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return PublicKey{}, badFile(field, "", "the folder of %q cannot be made: %s", path, durable.Cause(err))
	}
	if err := newFile(field, path, key.PEM(), 0o600); err != nil {
		return PublicKey{}, err
	}
	if err := newFile(field, path+PublicSuffix, key.Public().PEM(), 0o644); err != nil {
		return PublicKey{}, errors.Join(err, os.Remove(path))
	}
	return key.Public(), nil
}

// newFile makes a file that must not exist.
func newFile(field, path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return badFile(field, "", "%q cannot be written: %s", path, durable.Cause(err))
	}
	if err := durable.Fill(f, content); err != nil {
		return errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path), os.Remove(path))
	}
	return nil
}

// ReadKeyFile reads a private key. CodeInvalid names the field if there is none.
func ReadKeyFile(field, path string) (Key, error) { return readKeyFile(field, path, ParseKey) }

// ReadPublicKeyFiles reads public keys. CodeInvalid names the field if a file has none.
func ReadPublicKeyFiles(field string, paths []string) ([]PublicKey, error) {
	var keys []PublicKey
	for _, path := range paths {
		key, err := readKeyFile(field, path, ParsePublicKey)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readKeyFile[K any](field, path string, parse func([]byte) (K, error)) (key K, err error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return key, badFile(field, "'marchwarden export --new-key FILE' makes a key", "%q cannot be read: %s", path, durable.Cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err != nil {
		return key, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", path)
	}
	if len(data) > maxKeyBytes {
		return key, badFile(field, "", "%q must be at most %d bytes", path, maxKeyBytes)
	}
	if key, err = parse(data); err != nil {
		return key, badFile(field, marchwarden.HintOf(err), "%q: %v", path, err)
	}
	return key, nil
}
