package hub

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	lockName = "lock"
	hubName  = "hub.json"
)

// store is the folder of a hub while it is held.
type store struct {
	lock *os.File // held as long as it is open; the server itself takes no lock
	path string   // of the file that says whose folder it is
	form hubForm  // what it says
}

// hubForm is what a folder says about the hub that it is of. A server that runs alone and
// one of a cluster keep their streams differently, and each would take the other's for
// what is left over and delete it; so would one of another name in a cluster.
type hubForm struct {
	Name    string `json:"name"`
	Cluster string `json:"cluster,omitempty"`
	// Accounts have streams in the folder. Earlier versions knew more than one.
	Accounts []string `json:"accounts,omitempty"`
	// Closed is that the hub has had a keys file: no client connects without a key, whatever
	// becomes of the file.
	Closed bool `json:"closed,omitempty"`
}

// openStore makes the folder and takes it for this process.
func openStore(cfg Config) (*store, error) {
	if err := durable.MakeDir(cfg.Store); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the folder of the hub")
	}
	if err := os.Chmod(cfg.Store, 0o700); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep others out of the folder of the hub")
	}
	f, err := durable.Own(filepath.Join(cfg.Store, lockName), func(f *os.File) error { return durable.Lock(f, false) })
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Err: durable.ErrLocked,
			Message: fmt.Sprintf("another hub uses the folder %s", cfg.Store), Hint: "stop it, or give this one a folder of its own"}
	case err != nil: // without a lock two servers could destroy each other's streams
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Err: err, Message: fmt.Sprintf("the folder %s cannot be locked", cfg.Store), Hint: "use a folder on a local disk"}
	}
	s := &store{lock: f, path: filepath.Join(cfg.Store, hubName)}
	if err := s.identify(cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// identify makes sure that the folder is of this hub, and names the hub.
func (s *store) identify(cfg Config) error {
	want := hubForm{Name: cfg.Name}
	if cfg.ClusterListen != "" {
		want.Cluster = cfg.ClusterName
	}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if want.Name == "" {
			want.Name = "hub-" + strings.ToLower(rand.Text()[:12])
		}
		return s.write(want)
	}
	if err == nil {
		err = json.Unmarshal(text, &s.form)
	}
	if err == nil && s.form.Name == "" {
		err = errors.New("it does not name a hub")
	}
	is := s.form
	other := slices.IndexFunc(is.Accounts, func(a string) bool { return a != mainAccount })
	switch {
	case err != nil:
		return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read %s", s.path)
	case other >= 0: // its streams would be lost
		return fmt.Errorf("the folder %s: %w", cfg.Store, errAccount(is.Accounts[other]))
	case is.Cluster != want.Cluster:
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "store", Message: fmt.Sprintf("the folder %s is that of %s, and cannot be that of %s", cfg.Store, is, want), Hint: "give this hub a folder of its own"}
	case want.Name != "" && want.Name != is.Name:
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "name", Message: fmt.Sprintf("the folder %s is that of the hub %q, not %.64q", cfg.Store, is.Name, want.Name), Hint: "give this hub a folder of its own"}
	}
	return nil
}

func (f hubForm) String() string {
	if f.Cluster == "" {
		return "a hub that runs alone"
	}
	return fmt.Sprintf("a hub of the cluster %q", f.Cluster)
}

// remember keeps that the door is closed, once it was.
func (s *store) remember(closed bool) error {
	if !closed || s.form.Closed {
		return nil
	}
	form := s.form
	form.Closed = true
	return s.write(form)
}

// write makes the folder say form. What it says stays if that fails.
func (s *store) write(form hubForm) error {
	text, err := json.Marshal(form)
	if err == nil {
		err = durable.ReplaceFile(s.path, append(text, '\n'))
	}
	if err == nil {
		s.form = form
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write whose folder it is")
}

// close gives the folder back.
func (s *store) close() error { return durable.Release(s.lock) }
