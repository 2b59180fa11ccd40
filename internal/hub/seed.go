package hub

import (
	"bytes"
	"errors"
	"io/fs"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const maxSeedBytes = 1 << 10

// ReadSeed is the seed in a file that only its owner can read: one line, with blanks
// around it if need be. The errors name the file and never what is in it.
func ReadSeed(path string) ([]byte, error) {
	text, err := ReadSecret(path, "key file")
	if err != nil {
		return nil, err
	}
	if _, err := Inbox(text); err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the key file %s does not have a key: one line that begins with SU", path)
	}
	return text, nil
}

// ReadSecret is the one line in a file that only its owner can read, without the blanks
// around it. CodeInvalid if there is none.
func ReadSecret(path, what string) ([]byte, error) {
	text, err := durable.ReadPrivate(path, what, maxSeedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no %s %s", what, path)
	}
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || bytes.ContainsAny(text, "\r\n\x00") {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the %s %s must have one line that is not blank", what, path)
	}
	return text, nil
}
