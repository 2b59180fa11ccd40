package hub_test

import (
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

// A key's seed is shown once and is nowhere in the file; the public half and who it is
// of are kept until they are removed.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "keys.json")
	f := hub.KeysFile(path)
	if _, exists, err := hub.ReadKeys(path); exists || err != nil {
		t.Errorf("before the first key: %t, %v", exists, err)
	}
	seeds := map[string]string{}
	for _, k := range []struct {
		name string
		role hub.Role
	}{{"w1", hub.RoleWorker}, {"desk", hub.RoleClient}, {"ops", hub.RoleHub}} {
		seed, err := f.Add(noon, k.name, k.role)
		if err != nil {
			t.Fatal(err)
		}
		seeds[k.name] = string(seed)
	}
	list, _, err := hub.ReadKeys(path)
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
		if in, err := hub.Inbox([]byte(seeds[k.Name])); err != nil || in != "_INBOX_"+public {
			t.Errorf("its inbox is %s, %v", in, err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", k.Name, k.Account, k.Role, k.Created.Format(time.RFC3339Nano)))
	}
	want := []string{"desk main client 2026-03-01T12:00:00Z", "ops main hub 2026-03-01T12:00:00Z", "w1 main worker 2026-03-01T12:00:00Z"}
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
	if list, exists, err := hub.ReadKeys(path); len(list) != 0 || !exists || err != nil {
		t.Errorf("left: %v, %t, %v", list, exists, err)
	}
}

func TestAddRefuses(t *testing.T) {
	f := hub.KeysFile(filepath.Join(t.TempDir(), "keys.json"))
	if _, err := f.Add(noon, "w1", hub.RoleWorker); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		role  hub.Role
		field string
	}{
		{"w1", hub.RoleClient, "name"}, {"", hub.RoleClient, "name"}, {"a.b", hub.RoleClient, "name"}, {"a*", hub.RoleClient, "name"}, {strings.Repeat("a", 65), hub.RoleClient, "name"},
		{"w2", "", "role"}, {"w2", "admin", "role"},
	} {
		_, err := f.Add(noon, c.name, c.role)
		var e *marchwarden.Error
		if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if list, _, err := hub.ReadKeys(string(f)); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// Processes that add at the same time lose nothing of each other's.
func TestAddAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var all sync.WaitGroup
	for i := range 8 {
		f := hub.KeysFile(path)
		all.Go(func() {
			if _, err := f.Add(noon, fmt.Sprintf("k%d", i), hub.RoleClient); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, _, err := hub.ReadKeys(path); err != nil || len(list) != 8 {
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
		"another account":  {file(key("a", "press", "worker", public)), 0o600, marchwarden.CodeCorrupt},
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
		if _, _, err := hub.ReadKeys(path); c.code == "" && err != nil || c.code != "" && !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// What is said about a file of secrets never has the secret in it.
func TestReadSeed(t *testing.T) {
	dir := t.TempDir()
	seed, err := hub.KeysFile(filepath.Join(dir, "keys.json")).Add(noon, "w", hub.RoleWorker)
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
		got, err := hub.ReadSeed(path)
		switch {
		case runtime.GOOS == "windows" && c.code == marchwarden.CodeDenied:
		case c.code == "" && (err != nil || string(got) != string(seed)), c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%q: %v", c.text, err)
		case err != nil && strings.Contains(err.Error(), string(seed[5:])):
			t.Errorf("the seed is in %v", err)
		}
	}
	if _, err := hub.ReadSeed(filepath.Join(dir, "none")); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}
