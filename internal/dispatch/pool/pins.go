package pool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Pins remembers by which hash the tool of a member was first described. It is
// safe for concurrent use.
type Pins interface {
	// Get is the hash of a member; ok is false if there is none yet. An error means that it is
	// unknown, and is not to be taken for none.
	Get(member string) (hash string, ok bool, err error)
	// Set makes hash the one of a member, whatever it was.
	Set(member, hash string) error
}

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

// FilePins keeps pins in a JSON file (mode 0600), which several processes may
// share. Nothing is made before the first Set, which makes the folder too (0700).
// A change is a new file that replaces the old one whole, so a crash leaves either.
// A lock file beside it stays. A file that cannot be read for what it should be is
// an error with CodeCorrupt from Get and Set alike and is left as it is; one of a
// later version is one with CodeUnsupported.
func FilePins(path string) Pins { return &filePins{path: path} }

type filePins struct {
	path string
	mu   sync.Mutex // one Set of this process at a time, to wait in order
}

func (f *filePins) Get(member string) (hash string, ok bool, err error) {
	pins, err := f.read()
	hash, ok = pins[member]
	return hash, ok, err
}

func (f *filePins) Set(member, hash string) error {
	if !validName.MatchString(member) || !validPin.MatchString(hash) {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "pin %.80q to %.80q: that is no name or no hash", member, hash)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.locked(func() error {
		pins, err := f.read()
		if err != nil || pins[member] == hash {
			return err
		}
		if pins == nil {
			pins = map[string]string{}
		}
		pins[member] = hash
		return f.write(pins)
	})
	var e *marchwarden.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the pins in %s", f.path)
}

// locked calls fn while no other process does.
func (f *filePins) locked(fn func() error) error {
	if err := durable.MakeDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	unlock, err := durable.LockFile(f.path + ".lock")
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return errors.Join(fn(), unlock())
}

// read gives the pins of the file, nil if there is none.
func (f *filePins) read() (map[string]string, error) {
	data, err := readFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the pins in %s", f.path)
	}
	pins, err := decodePins(data)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: "read the pins in " + f.path, Err: err,
			Hint: "restore the file, or remove it if the tools of all third-party researchers are to be pinned anew"}
	}
	return pins, nil
}

// readFile gives one byte over the limit at most.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPinsFile+1))
	return data, errors.Join(err, file.Close())
}

func decodePins(data []byte) (map[string]string, error) {
	damaged := func(format string, args ...any) error {
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "the file is damaged: "+format, args...)
	}
	if len(data) > maxPinsFile {
		return nil, damaged("it is longer than %d bytes", maxPinsFile)
	}
	var file pinsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, damaged("%v", err)
	}
	if file.Version > pinsVersion {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "it has version %d, and this program knows %d", file.Version, pinsVersion)
	}
	if file.Version != pinsVersion || file.Pins == nil {
		return nil, damaged("it has no version or no pins")
	}
	for member, hash := range file.Pins {
		if !validName.MatchString(member) || !validPin.MatchString(hash) {
			// Which of several is said depends on nothing that matters.
			return nil, damaged("there is a pin without a proper name or hash")
		}
	}
	return file.Pins, nil
}

func encodePins(pins map[string]string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(pinsFile{Version: pinsVersion, Pins: pins})
	return buf.Bytes(), err
}

// write replaces the file. It is called with the lock held.
func (f *filePins) write(pins map[string]string) error {
	data, err := encodePins(pins)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(f.path, data)
}
