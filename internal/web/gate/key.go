package gate

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/private"
)

// KeySize is how many bytes a key has.
const KeySize = 32

const (
	keyKind    = "key of the web pages"
	maxKeyFile = 2*KeySize + 2
)

// OpenKey is the key that is kept in a file, as hex digits, made from random if there is none.
// Several processes may ask at once and get the same. CodeDenied if others than its owner can
// get at the file, CodeCorrupt if it holds no key, CodeUnavailable if it cannot be read or made.
// Removing the file ends all sessions when the server starts again.
func OpenKey(path string, random io.Reader) ([]byte, error) {
	text, err := private.Read(path, keyKind, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = private.Edit(path, keyKind, maxKeyFile, func(old []byte, exists bool) ([]byte, error) {
			if text = old; exists { // another process was first
				return text, nil
			}
			key := make([]byte, KeySize)
			if _, err := io.ReadFull(random, key); err != nil {
				return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the %s: read random bytes", keyKind)
			}
			text = append(hex.AppendEncode(nil, key), '\n')
			return text, nil
		})
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeySize { // the error may quote it
		return nil, &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: "the " + keyKind + " " + path + " is none", Hint: "remove the file: another is made, and browsers sign in again"}
	}
	return key, nil
}
