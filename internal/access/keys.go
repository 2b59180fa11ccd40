package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/keyfunc/v3"
)

// keys are the public keys of an issuer at one time. They do not change.
type keys struct {
	find keyfunc.Keyfunc
	ids  []string // of those that have one
}

// How many keys an issuer may have, and how large one of RSA is.
const (
	maxKeys    = 64
	minRSABits = 2048
	maxRSABits = 8192
)

// keyForm is a key of a set (RFC 7517), with just what a public key for signatures needs.
type keyForm struct {
	KTY string `json:"kty"`
	KID string `json:"kid,omitempty"`
	Use string `json:"use,omitempty"`
	Alg string `json:"alg,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
}

// parseKeys reads a set of keys. Those that are not for signatures, of an unknown kind or too weak are
// passed over. Errors quote nothing of the set.
func parseKeys(text []byte) (*keys, error) {
	var form struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, errors.New("the set of keys is none")
	}
	if len(form.Keys) > maxKeys {
		return nil, fmt.Errorf("the set has %d keys, over the limit of %d", len(form.Keys), maxKeys)
	}
	var good []keyForm
	var ids []string
	for _, raw := range form.Keys {
		var k keyForm
		if json.Unmarshal(raw, &k) != nil || !k.usable() || k.KID != "" && slices.Contains(ids, k.KID) {
			continue
		}
		good = append(good, k)
		if k.KID != "" {
			ids = append(ids, k.KID)
		}
	}
	if len(good) == 0 {
		return nil, errors.New("the set has no key that a token could be signed by")
	}
	find, err := readKeys(good)
	if err != nil {
		return nil, err
	}
	return &keys{find: find, ids: ids}, nil
}

// usable reports whether a key is a public key for signatures that is strong enough.
func (k keyForm) usable() bool {
	if k.Use != "" && k.Use != "sig" || k.Alg != "" && !slices.Contains(algorithms, k.Alg) {
		return false
	}
	set, err := readKeys([]keyForm{k})
	if err != nil {
		return false
	}
	all, err := set.VerificationKeySet(context.Background())
	if err != nil || len(all.Keys) != 1 {
		return false
	}
	switch key := all.Keys[0].(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits && key.N.BitLen() <= maxRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false // a shared secret, or a key for something else
}

func readKeys(good []keyForm) (keyfunc.Keyfunc, error) {
	text, err := json.Marshal(map[string]any{"keys": good})
	if err != nil {
		return nil, errors.New("a key cannot be read")
	}
	set, err := keyfunc.NewJWKSetJSON(text)
	if err != nil { // it would quote the key
		return nil, errors.New("a key cannot be read")
	}
	return set, nil
}
