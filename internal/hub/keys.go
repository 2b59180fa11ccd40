package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// The accounts of the server: of all that a cluster keeps, of clients, and of the server itself.
const (
	mainAccount   = "main"
	clientAccount = "main/clients"
	systemAccount = "SYS"
)

const maxNameBytes = 64

// Role is what a key is good for.
type Role string

// The roles, from most to least.
const (
	RoleHub    Role = "hub"    // everything
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
	Account string    `json:"account,omitempty"` // mainAccount, or "" for it; earlier versions knew others
	Role    Role      `json:"role"`
	Public  string    `json:"public"`
	Created time.Time `json:"created"`
}

// KeysFile is the path of a file of keys, which ReadKeys reads. One that does not exist has
// no keys; the first Add makes it. Several processes may change one file.
type KeysFile string

// Add makes a key, keeps its public half and returns the seed, which cannot be had again.
// The file is on the disk when Add returns; hubs know the key within seconds. CodeInvalid if
// the name is taken, a name or role is not sound, or there are 1,000 keys.
func (f KeysFile) Add(now time.Time, name string, role Role) (seed []byte, err error) {
	added := Key{Name: name, Account: mainAccount, Role: role, Created: now.UTC().Truncate(time.Second)}
	if err := added.check(); err != nil {
		return nil, err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a key")
	}
	defer pair.Wipe()
	added.Public, err = pair.PublicKey()
	if err == nil {
		seed, err = pair.Seed()
	}
	if err != nil {
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
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if k.Name == "" || len(k.Name) > maxNameBytes || strings.Trim(k.Name, allowed) != "" { // what is safe in a file, a log line and an argument
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "name", Message: fmt.Sprintf("must be 1 to %d letters, digits, dashes or underscores", maxNameBytes)}
	}
	if k.Account != "" && k.Account != mainAccount {
		return errAccount(k.Account)
	}
	if !slices.Contains(Roles(), k.Role) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "role", Message: fmt.Sprintf("must be hub, worker or client, not %.40q", string(k.Role))}
	}
	return nil
}

// errAccount refuses what earlier versions kept apart on one hub: it would no longer be.
func errAccount(name string) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "account", Message: fmt.Sprintf("%.64q is another account, and a hub has one account only by now", name),
		Hint: "give each account a hub of its own"}
}

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

// The streams and buckets of package cluster and its drivers. A test of the hub holds
// what is said here to what they use.
var (
	streams = []string{"MW_TASK", "MW_WORK", "MW_LOG", "MW_DONE", "MW_BLOB"}
	buckets = []string{"MW_FACTS", "MW_WORKER", "MW_LIMIT"}
)

// rights are the subjects, within its account, that a key may publish to and subscribe to;
// nil is every one. A client submits tasks and wishes to cancel them, and reads. A worker
// also takes tasks, writes records, ends and evidence, says that it is there, and shares
// limits. Neither makes, changes, empties or removes a stream, nor removes a message.
// Answers to its requests come to a place that it alone may listen at.
func (k Key) rights() *server.Permissions {
	own := []string{inbox(k.Public) + ".>"}
	switch k.Role {
	case RoleHub:
		return nil
	case RoleWorker:
		return allow(slices.Concat(read, ask, work), slices.Concat(own, watch, wake))
	case RoleClient:
		return allow(slices.Concat(read, ask), slices.Concat(own, watch))
	default: // no role, no rights; a list that is empty would be every subject
		return allow(own, own)
	}
}

func allow(publish, subscribe []string) *server.Permissions {
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
}

var (
	// read: the state of streams, their messages one at a time, and what is in buckets.
	read = reading()
	// ask: tasks, wishes to cancel, and the word to workers that there is one.
	ask = []string{"mw.task.*", "mw.cancel.*", "mw.stop.*", "mw.work.*.*.*.*"}
	// watch: what is written to records, and progress.
	watch = []string{"mw.seen.*.*", "mw.live.*.*"}
	// work: taking tasks, their records and ends, evidence, presence and limits.
	work = []string{
		"$JS.API.CONSUMER.CREATE.MW_WORK.*.mw.work.*.*.*.*",
		"$JS.API.CONSUMER.INFO.MW_WORK.*", "$JS.API.CONSUMER.MSG.NEXT.MW_WORK.*",
		"$JS.ACK.MW_WORK.>",
		"mw.log.*.*", "mw.live.*.*", "mw.done.*",
		"mw.blob.*", "mw.chunk.*.*.*",
		"$KV.MW_WORKER.worker.>", "$KV.MW_LIMIT.>",
		"mw.wake.*.*.*.*", "mw.tick.*",
	}
	// wake: that there are tasks, and that one is canceled.
	wake = []string{"mw.wake.*.*.*.*", "mw.tick.*", "mw.stop.*"}
)

func reading() []string {
	subjects := []string{"$JS.API.CONSUMER.LIST.MW_WORK", "$JS.API.STREAM.MSG.GET.KV_MW_FACTS"}
	for _, s := range streams {
		subjects = append(subjects, "$JS.API.STREAM.INFO."+s, "$JS.API.STREAM.MSG.GET."+s)
	}
	for _, b := range buckets {
		subjects = append(subjects, "$JS.API.STREAM.INFO.KV_"+b, "$JS.API.DIRECT.GET.KV_"+b+".$KV."+b+".>")
	}
	return subjects
}

// Inbox is the prefix of the subjects at which the holder of a seed gets replies. In its account
// hubs alone get replies there, too.
func Inbox(seed []byte) (string, error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the key")
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(public) {
		return "", marchwarden.Errorf(marchwarden.CodeInvalid, "it is not a user's key")
	}
	return inbox(public), nil
}

func inbox(public string) string { return "_INBOX_" + public }
