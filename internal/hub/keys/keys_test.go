package keys_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub/keys"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

func open(t *testing.T, path string) *keys.File {
	t.Helper()
	f, err := keys.Open(path, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A key's seed is shown once and is nowhere in the file; the public half and who it is
// of are kept until they are removed.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "keys.json")
	f := open(t, path)
	if _, exists, err := keys.Read(path); exists || err != nil {
		t.Errorf("before the first key: %t, %v", exists, err)
	}
	seeds := map[string]string{}
	for _, k := range []struct {
		name, account string
		role          keys.Role
	}{{"w1", "", keys.Worker}, {"desk", "press", keys.Client}, {"ops", "main", keys.Hub}} {
		seed, err := f.Add(rand.Reader, k.name, k.account, k.role)
		if err != nil {
			t.Fatal(err)
		}
		seeds[k.name] = string(seed)
	}
	list, err := open(t, path).List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range list {
		pair, err := nkeys.FromSeed([]byte(seeds[k.Name]))
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil || public != k.Public {
			t.Errorf("%s: the public half is %s, not %s: %v", k.Name, k.Public, public, err)
		}
		if in, err := keys.Inbox([]byte(seeds[k.Name])); err != nil || in != "_INBOX_"+public {
			t.Errorf("its inbox is %s, %v", in, err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", k.Name, k.Account, k.Role, k.Created.Format(time.RFC3339Nano)))
	}
	want := []string{"desk press client 2026-03-01T12:00:00Z", "ops main hub 2026-03-01T12:00:00Z", "w1 main worker 2026-03-01T12:00:00Z"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, seed := range seeds {
		if strings.Contains(string(text), seed) {
			t.Errorf("the file has the seed of %s", name)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, name := range []string{"w1", "desk", "ops"} {
		if err := f.Remove(name); err != nil {
			t.Error(err)
		}
		if err := f.Remove(name); !errors.Is(err, marchwarden.CodeNotFound) {
			t.Errorf("a second time: %v", err)
		}
	}
	if list, exists, err := keys.Read(path); len(list) != 0 || !exists || err != nil {
		t.Errorf("left: %v, %t, %v", list, exists, err)
	}
}

func TestAddRefuses(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "keys.json"))
	if _, err := f.Add(rand.Reader, "w1", "", keys.Worker); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, account string
		role          keys.Role
		field         string
	}{
		{"w1", "", keys.Client, "name"}, {"", "", keys.Client, "name"}, {"a.b", "", keys.Client, "name"}, {"a*", "", keys.Client, "name"}, {strings.Repeat("a", 65), "", keys.Client, "name"},
		{"w2", "a b", keys.Client, "account"}, {"w2", "SYS", keys.Client, "account"}, {"w2", "sys", keys.Client, "account"}, {"w2", `a" {`, keys.Client, "account"}, {"w2", "$G", keys.Client, "account"}, {"w2", "a.>", keys.Client, "account"},
		{"w2", "", "", "role"}, {"w2", "", "admin", "role"},
	} {
		_, err := f.Add(rand.Reader, c.name, c.account, c.role)
		var e *marchwarden.Error
		if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if list, err := f.List(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// Processes that add at the same time lose nothing of each other's.
func TestAddAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var all sync.WaitGroup
	for i := range 8 {
		f := open(t, path)
		all.Go(func() {
			if _, err := f.Add(rand.Reader, fmt.Sprintf("k%d", i), "", keys.Client); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := open(t, path).List(); err != nil || len(list) != 8 {
		t.Errorf("%d keys, %v", len(list), err)
	}
}

func TestReadRefuses(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := account.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	key := func(name, account, role, public string) string {
		return fmt.Sprintf(`{"name":%q,"account":%q,"role":%q,"public":%q,"created":"2026-03-01T12:00:00Z"}`, name, account, role, public)
	}
	file := func(keys ...string) string { return `{"version":1,"keys":[` + strings.Join(keys, ",") + `]}` }
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		code marchwarden.Code
	}{
		"sound":            {file(key("a", "main", "worker", public)), 0o600, ""},
		"empty":            {"", 0o600, marchwarden.CodeCorrupt},
		"a later version":  {`{"version":2,"keys":[]}`, 0o600, marchwarden.CodeCorrupt},
		"a later field":    {`{"version":1,"keys":[],"revoked":["a"]}`, 0o600, marchwarden.CodeCorrupt},
		"more":             {file() + "{}", 0o600, marchwarden.CodeCorrupt},
		"no user's key":    {file(key("a", "main", "worker", foreign)), 0o600, marchwarden.CodeCorrupt},
		"no role":          {file(key("a", "main", "", public)), 0o600, marchwarden.CodeCorrupt},
		"an unknown role":  {file(key("a", "main", "root", public)), 0o600, marchwarden.CodeCorrupt},
		"the hubs' own":    {file(key("a", "SYS", "worker", public)), 0o600, marchwarden.CodeCorrupt},
		"one key twice":    {file(key("a", "main", "worker", public), key("b", "main", "hub", public)), 0o600, marchwarden.CodeCorrupt},
		"others can read":  {file(), 0o640, marchwarden.CodeDenied},
		"others can write": {file(), 0o602, marchwarden.CodeDenied},
	} {
		if runtime.GOOS == "windows" && c.code == marchwarden.CodeDenied {
			continue
		}
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.Read(path); c.code == "" && err != nil || c.code != "" && !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// What is said about a file of secrets never has the secret in it.
func TestReadSeed(t *testing.T) {
	dir := t.TempDir()
	seed, err := open(t, filepath.Join(dir, "keys.json")).Add(rand.Reader, "w", "", keys.Worker)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "w.key")
	for _, c := range []struct {
		text string
		mode os.FileMode
		code marchwarden.Code
	}{
		{string(seed), 0o600, ""}, {"\n  " + string(seed) + " \r\n", 0o400, ""},
		{string(seed), 0o644, marchwarden.CodeDenied}, {string(seed[1:]), 0o600, marchwarden.CodeInvalid}, {string(seed) + "\n" + string(seed), 0o600, marchwarden.CodeInvalid},
		{"", 0o600, marchwarden.CodeInvalid}, {strings.Repeat("S", 5000), 0o600, marchwarden.CodeCorrupt},
	} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := keys.ReadSeed(path)
		switch {
		case runtime.GOOS == "windows" && c.code == marchwarden.CodeDenied:
		case c.code == "" && (err != nil || string(got) != string(seed)), c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%q: %v", c.text, err)
		case err != nil && strings.Contains(err.Error(), string(seed[5:])):
			t.Errorf("the seed is in %v", err)
		}
	}
	if _, err := keys.ReadSeed(filepath.Join(dir, "none")); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A key without a role that is known may do nothing.
func TestNoRole(t *testing.T) {
	r := keys.Key{Public: "U"}.Rights()
	if r.All || len(r.Publish) != 1 || len(r.Subscribe) != 1 || r.Publish[0] != "_INBOX_U.>" {
		t.Errorf("it may %+v", r)
	}
}
