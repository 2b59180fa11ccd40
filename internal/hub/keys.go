package hub

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Accounts that there are without any key of theirs.
const (
	DefaultAccount = "main" // of a client that names none
	SystemAccount  = "SYS"  // the hubs' own, for which there is no key
)

const maxNameBytes = 64

// Role is what a key is good for.
type Role string

// The roles, from most to least.
const (
	RoleHub    Role = "hub"    // everything in its account
	RoleWorker Role = "worker" // takes tasks and writes their records; submits tasks, too
	RoleClient Role = "client" // submits, watches and cancels
)

// Roles are all roles, from most to least.
func Roles() []Role { return []Role{RoleHub, RoleWorker, RoleClient} }

// Key is the public half of a key, and whose it is. The seed, its other half, is shown once,
// when the pair is made, and is its holder's; the file has public halves only, so that its
// readers can forge nothing.
type Key struct {
	Name    string    `json:"name"`
	Account string    `json:"account"`
	Role    Role      `json:"role"`
	Public  string    `json:"public"`
	Created time.Time `json:"created"`
}

// KeysFile is the path of a file of keys, which ReadKeys reads. One that does not exist has
// no keys; the first Add makes it. Several processes may change one file.
type KeysFile string

// Add makes a key, keeps its public half and returns the seed, which cannot be had again.
// The file is on the disk when Add returns; hubs know the key within seconds. CodeInvalid if
// the name is taken, a name, account or role is not sound, or there are 1,000 keys. An account
// "" is DefaultAccount.
func (f KeysFile) Add(now time.Time, name, account string, role Role) (seed []byte, err error) {
	added := Key{Name: name, Account: cmp.Or(account, DefaultAccount), Role: role, Created: now.UTC().Truncate(time.Second)}
	if err := added.check(); err != nil {
		return nil, err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a key")
	}
	defer pair.Wipe()
	if added.Public, err = pair.PublicKey(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "make a key")
	}
	if seed, err = pair.Seed(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "make a key")
	}
	if err := keysFile.Add(string(f), added); err != nil {
		return nil, err
	}
	return slices.Clone(seed), nil
}

// Remove forgets a key: hubs refuse it within seconds, and close what it has open.
// CodeNotFound if there is none of that name.
func (f KeysFile) Remove(name string) error { return keysFile.Remove(string(f), name) }

// keysFile is the form of the file.
var keysFile = durable.Named[Key]{What: "key", Name: func(k Key) string { return k.Name }, Check: func(list []Key, i int) error {
	k := list[i]
	if err := k.check(); err != nil {
		return err
	}
	if !nkeys.IsValidPublicUserKey(k.Public) {
		return fmt.Errorf("%q: public must be the public half of a user's key", k.Name)
	}
	if slices.ContainsFunc(list[:i], func(other Key) bool { return other.Public == k.Public }) {
		return fmt.Errorf("%q: another has the same public half", k.Name)
	}
	return nil
}}

// ReadKeys is what a keys file has, by name, and whether there is a file. CodeDenied if
// others than its owner can write or read it, CodeCorrupt if it is no keys file,
// CodeUnavailable if it cannot be read.
func ReadKeys(path string) (list []Key, exists bool, err error) { return keysFile.Read(path) }

// check looks at all but the public half.
func (k Key) check() error {
	if err := checkName("name", k.Name); err != nil {
		return err
	}
	if err := CheckAccount(k.Account); err != nil {
		return err
	}
	if !slices.Contains(Roles(), k.Role) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "role", Message: fmt.Sprintf("must be hub, worker or client, not %.40q", string(k.Role))}
	}
	return nil
}

// CheckAccount says whether an account may have a name: CodeInvalid if not.
func CheckAccount(name string) error {
	if strings.EqualFold(name, SystemAccount) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "account", Message: "must not be " + SystemAccount + ", which is the hubs' own"}
	}
	return checkName("account", name)
}

// checkName holds names to what is safe in a file, a subject, a log line and an argument.
func checkName(field, name string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if name == "" || len(name) > maxNameBytes || strings.Trim(name, allowed) != "" {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf("must be 1 to %d letters, digits, dashes or underscores", maxNameBytes)}
	}
	return nil
}
