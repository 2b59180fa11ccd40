package limit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// mostKept is how many limiters a set remembers before those at rest are forgotten: there
// is one for each host that pages are read from.
const mostKept = 4096

// Set is all limits of one engine, as one process sees them: the same limiter for the
// same key. Store and Now are needed; nothing is read before a limit is used. It is safe for
// concurrent use.
type Set struct {
	Rules Rules
	// Store is the store of a key, always of the same state for the same key.
	Store func(key string) Store
	Now   func() time.Time // the clock of this process

	mu    sync.Mutex // guards what follows
	byKey map[string]*Limiter
}

// Limit is the limit of a key such as "anthropic/requests" or
// "host:example.org/requests". What Slow says reaches others by the store of a key that has a
// rule; one without a rule waits only after a Slow of this process.
func (s *Set) Limit(key string) dispatch.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.byKey[key]; ok {
		return l
	}
	if s.byKey == nil {
		s.byKey = map[string]*Limiter{}
	}
	if len(s.byKey) >= mostKept {
		s.forget()
	}
	rate, _ := s.Rules.For(key)
	l := New(Config{Name: key, Rate: rate, Store: s.Store(key), Now: s.Now})
	s.byKey[key] = l
	return l
}

// forget drops limiters that no call waits for and that hold no call back. The caller has mu.
func (s *Set) forget() {
	for key, l := range s.byKey {
		if l.rests() {
			delete(s.byKey, key)
		}
	}
}

// ErrConflict says that the state of a store is not the one that was to be replaced.
var ErrConflict = errors.New("another process has changed it")

// ErrClosed says that a store will not answer any more, so that callers stop trying.
var ErrClosed = errors.New("the engine is closed")

// A Store keeps the state of one limit where all can reach it, and knows the time on the
// clock that all share. It is safe for concurrent use. What it cannot do within a few
// seconds fails.
type Store interface {
	// Load reads the state. A store that was never written has none, and revision 0.
	Load(ctx context.Context) (state []byte, rev uint64, err error)
	// Swap replaces the state of a revision, 0 for none. ErrConflict says that there is
	// another state by now, and that nothing was done. After any other error the state may or
	// may not have been replaced.
	Swap(ctx context.Context, state []byte, rev uint64) error
	// Now is the time on the shared clock, as well as it is known here.
	Now() time.Time
}

// longestName is how long a name may be before it is a hash.
const longestName = 180

// Name spells a key with letters, digits, "-", "_" and "=" alone, one name for one key, so
// that it can be the name of a file or one word of a subject.
func Name(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	if b.Len() > longestName || b.Len() == 0 {
		sum := sha256.Sum256([]byte("limit key\x00" + key))
		return "=" + hex.EncodeToString(sum[:])
	}
	return b.String()
}

// Folder gives stores that are files in a folder, which is made (mode 0700) when missing,
// for all processes of one machine, by the machine's clock. What is swapped survives a
// power loss.
func Folder(dir string, now func() time.Time) func(key string) Store {
	return func(key string) Store { return &file{path: filepath.Join(dir, Name(key)), now: now} }
}

// file is a store whose file holds the revision, a line end, and the state.
type file struct {
	path string
	now  func() time.Time
}

func (f *file) Load(context.Context) ([]byte, uint64, error) {
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a limit")
	}
	head, state, _ := bytes.Cut(b, []byte("\n"))
	rev, err := strconv.ParseUint(string(head), 10, 64)
	if err != nil {
		return nil, 0, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read the limit %s", f.path)
	}
	return state, rev, nil
}

func (f *file) Swap(ctx context.Context, state []byte, rev uint64) (err error) {
	err = durable.MakeDir(filepath.Dir(f.path))
	var unlock func() error
	if err == nil {
		unlock, err = durable.LockFile(f.path + ".lock")
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write a limit")
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, now, err := f.Load(ctx)
	if err != nil {
		return err
	}
	if now != rev {
		return ErrConflict
	}
	err = durable.ReplaceFile(f.path, fmt.Appendf(nil, "%d\n%s", rev+1, state))
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write a limit")
}

func (f *file) Now() time.Time { return f.now() }
