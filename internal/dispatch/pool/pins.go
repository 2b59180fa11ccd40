package pool

import (
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	pinsVersion = 1
	maxPinsFile = 1 << 20
)

// validPin is what is taken for a hash.
var validPin = regexp.MustCompile(`^[0-9A-Za-z+/=:_-]{1,200}$`)

// pinsFile is the form on disk. Fields may be added with a higher version, which
// older programs refuse rather than drop what they do not know.
type pinsFile struct {
	Version int               `json:"version"`
	Pins    map[string]string `json:"pins"` // member → hash
}

// FilePins remembers by which hash the tool of a member was first described. It is the path of
// a JSON file (mode 0600), which several processes may share. Nothing is made before the first Set, which makes the folder too (0700).
// A change is a new file that replaces the old one whole, so a crash leaves either.
// A lock file beside it stays. A file that cannot be read for what it should be is
// an error with CodeCorrupt from Get and Set alike and is left as it is; one of a
// later version is one with CodeUnsupported.
type FilePins string

const pinsKind = "file of pins" // as errors call it

// Get is the hash of a member; ok is false if there is none yet. An error means that it is
// unknown, and is not to be taken for none.
func (f FilePins) Get(member string) (hash string, ok bool, err error) {
	data, err := durable.ReadPrivate(string(f), pinsKind, maxPinsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	var pins map[string]string
	if err == nil {
		pins, err = decodePins(data)
	}
	hash, ok = pins[member]
	return hash, ok, f.unreadable(err)
}

// Set makes hash the one of a member, whatever it was.
func (f FilePins) Set(member, hash string) error {
	if !dispatch.ValidName.MatchString(member) || !validPin.MatchString(hash) {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "pin %.80q to %.80q: that is no name or no hash", member, hash)
	}
	return durable.EditPrivate(string(f), pinsKind, maxPinsFile, func(old []byte, exists bool) (_ []byte, err error) {
		pins := map[string]string{}
		if exists {
			if pins, err = decodePins(old); err != nil {
				return nil, f.unreadable(err)
			}
		}
		pins[member] = hash
		return encodePins(pins)
	})
}

func (f FilePins) unreadable(err error) error {
	if err == nil {
		return nil
	}
	return &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: "read the pins in " + string(f), Err: err,
		Hint: "restore the file, or remove it if the tools of all third-party researchers are to be pinned anew"}
}

func decodePins(data []byte) (map[string]string, error) {
	var file pinsFile
	err := json.Unmarshal(data, &file)
	if err == nil && file.Version > pinsVersion {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "it has version %d, and this program knows %d", file.Version, pinsVersion)
	}
	if err == nil && (file.Version != pinsVersion || file.Pins == nil) {
		err = errors.New("it has no version or no pins")
	}
	for member, hash := range file.Pins {
		if err == nil && (!dispatch.ValidName.MatchString(member) || !validPin.MatchString(hash)) {
			err = errors.New("there is a pin without a proper name or hash")
		}
	}
	if err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the file is damaged: %v", err)
	}
	return file.Pins, nil
}

func encodePins(pins map[string]string) ([]byte, error) {
	text, err := json.MarshalIndent(pinsFile{Version: pinsVersion, Pins: pins}, "", "  ")
	return append(text, '\n'), err
}
