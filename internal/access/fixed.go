package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// digest is what is kept of a token. A token of ours is 256 random bits, which cannot be found by
// trying: the hash may be fast. It is tagged and framed, so that it is of no other use.
type digest [sha256.Size]byte

func digestOf(token string) digest {
	h := sha256.New()
	for _, part := range []string{"marchwarden/access token/1", token} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return digest(h.Sum(nil))
}

// minFixed is the least length of a token that this program did not make.
const minFixed = 16

// Fixed accepts one token, such as one of the environment, as "token:NAME" with all scopes. CodeInvalid
// if the name is none, or the token has less than 16 characters or such as a header cannot carry.
func Fixed(name, token string) (Authenticator, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if len(token) < minFixed || len(token) > maxTokenBytes {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the token %s must have %d to %d characters, not %d", name, minFixed, maxTokenBytes, len(token))
	}
	if !isBearer(token) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the token " + name + " has a character that a bearer token cannot have",
			Hint: "use letters, digits and - . _ ~ + / only, with no space or newline at the end"}
	}
	return &fixed{id: tokenPrefix + name, sum: digestOf(token)}, nil
}

// isBearer reports whether a text is of the characters that RFC 6750 gives a token.
func isBearer(s string) bool {
	return strings.Trim(strings.TrimRight(s, "="), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") == "" && !strings.HasPrefix(s, "=")
}

type fixed struct {
	id  string
	sum digest
}

func (f *fixed) Authenticate(_ context.Context, token string) (Principal, error) {
	sum := digestOf(token)
	if subtle.ConstantTimeCompare(f.sum[:], sum[:]) != 1 {
		return Principal{}, refuse(errUnknown)
	}
	return Principal{ID: f.id, Scopes: Scopes()}, nil
}
