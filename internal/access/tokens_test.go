package access

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: start} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t testing.TB, path string, c *clock) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(path, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func add(t testing.TB, tokens *Tokens, want Token) string {
	t.Helper()
	text, err := tokens.Add(rand.Reader, want)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// accepts says who a token is, or "" and why not.
func accepts(a Authenticator, token string) (string, error) {
	p, err := a.Authenticate(context.Background(), token)
	return p.ID, err
}

func TestTokens(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "deep", "tokens.json")
	tokens := open(t, path, c)
	if list, err := tokens.List(); len(list) != 0 || err != nil {
		t.Fatalf("%v, %v", list, err)
	}
	ci := add(t, tokens, Token{Name: "ci", Scopes: []string{"read", "research", "read"}, Expires: new(start.Add(time.Hour))})
	ada := add(t, tokens, Token{Name: "Ada.L-1_", Scopes: []string{"read"}})
	if !regexp.MustCompile(`^mw_[a-z2-7]{52}$`).MatchString(ci) || ci == ada {
		t.Errorf("the tokens are %s and %s", ci, ada)
	}
	want := []Token{
		{Name: "Ada.L-1_", Scopes: []string{"read"}, Created: start},
		{Name: "ci", Scopes: []string{"research", "read"}, Created: start, Expires: new(start.Add(time.Hour))},
	}
	for _, other := range []*Tokens{tokens, open(t, path, c)} {
		list, err := other.List()
		if diff := cmp.Diff(want, list); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		if p, err := other.Authenticate(context.Background(), ci); err != nil || !cmp.Equal(p, Principal{ID: "token:ci", Scopes: []string{"research", "read"}}) {
			t.Errorf("%v, %v", p, err)
		}
		if id, err := accepts(other, ada); id != "token:Ada.L-1_" {
			t.Errorf("%q, %v", id, err)
		}
	}
	for _, bad := range []string{"", "ci", ci[:len(ci)-1], ci + "a", strings.ToUpper(ci), strings.TrimPrefix(ci, "mw_"), strings.Repeat("a", 1<<20)} {
		if id, err := accepts(tokens, bad); id != "" || marchwarden.CodeOf(err) != marchwarden.CodeDenied || !errors.Is(err, errUnknown) {
			t.Errorf("%.80q: %q, %v", bad, id, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{ci, ada} {
		for n := 0; n+8 <= len(secret); n++ {
			if bytes.Contains(text, []byte(secret[n:n+8])) {
				t.Errorf("a part of the token is in the file: %s", text)
			}
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 2 { // and the lock
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTokensExpire(t *testing.T) {
	c := newClock()
	tokens := open(t, filepath.Join(t.TempDir(), "tokens.json"), c)
	text := add(t, tokens, Token{Name: "a", Scopes: Scopes(), Expires: new(start.Add(time.Hour))})
	c.pass(time.Hour - time.Nanosecond)
	if id, err := accepts(tokens, text); id == "" {
		t.Errorf("just before: %v", err)
	}
	c.pass(time.Nanosecond)
	if id, err := accepts(tokens, text); id != "" || marchwarden.CodeOf(err) != marchwarden.CodeDenied || !errors.Is(err, errExpired) {
		t.Errorf("then: %q, %v", id, err)
	}
	if list, _ := tokens.List(); !list[0].Expired(c.now()) || (Token{}).Expired(c.now()) {
		t.Errorf("%v", list)
	}
}

func TestTokensAddRefuses(t *testing.T) {
	c := newClock()
	tokens := open(t, filepath.Join(t.TempDir(), "tokens.json"), c)
	add(t, tokens, Token{Name: "taken", Scopes: Scopes()})
	for _, want := range []Token{
		{Name: "taken", Scopes: Scopes()},
		{Name: "", Scopes: Scopes()},
		{Name: "a b", Scopes: Scopes()},
		{Name: "../a", Scopes: Scopes()},
		{Name: "a\x00", Scopes: Scopes()},
		{Name: "é", Scopes: Scopes()},
		{Name: strings.Repeat("a", 65), Scopes: Scopes()},
		{Name: "a"},
		{Name: "a", Scopes: []string{"admin"}},
		{Name: "a", Scopes: Scopes(), Expires: new(start)},
	} {
		if text, err := tokens.Add(rand.Reader, want); text != "" || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%+v: %q, %v", want, text, err)
		}
	}
	if text, err := tokens.Add(strings.NewReader("too short"), Token{Name: "a", Scopes: Scopes()}); text != "" || err == nil {
		t.Errorf("with little randomness: %q, %v", text, err)
	}
	if text, err := tokens.Add(rand.Reader, Token{Name: "a", Scopes: Scopes(), Expires: new(start.AddDate(9000, 0, 0))}); text != "" || err == nil {
		t.Errorf("with a time that has no form: %q, %v", text, err)
	}
	if err := tokens.Remove("nobody"); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Error(err)
	}
	if list, err := tokens.List(); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// full fills a file up to the limit, with little to do for the disk.
func full(t *testing.T, path string) {
	t.Helper()
	list := make([]entry, 1000)
	for i := range list {
		list[i] = entry{Token{fmt.Sprintf("%s%04d", strings.Repeat("n", maxNameBytes-4), i), Scopes(), start, new(start.Add(time.Hour)), 9999.999999}, digestOf(fmt.Sprint(i))}
	}
	text, err := json.Marshal(map[string]any{"version": 1, "tokens": list})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTokensLimit(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "tokens.json")
	full(t, path)
	tokens := open(t, path, c) // so that the limit of bytes has room for it
	if text, err := tokens.Add(rand.Reader, Token{Name: "a", Scopes: Scopes()}); text != "" || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("%q, %v", text, err)
	}
	for _, i := range []int{0, 1, 1000 / 2, 1000 - 1} {
		if id, err := accepts(tokens, fmt.Sprint(i)); !strings.HasSuffix(id, fmt.Sprintf("%04d", i)) {
			t.Errorf("%d: %q, %v", i, id, err)
		}
	}
}

// What another process does counts when a second has passed.
func TestTokensWhileRunning(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "tokens.json")
	server, other := open(t, path, c), open(t, path, c)
	text := add(t, other, Token{Name: "a", Scopes: Scopes()})
	if id, _ := accepts(server, text); id != "" {
		t.Error("it looks at the file all the time")
	}
	c.pass(time.Second)
	if id, err := accepts(server, text); id == "" {
		t.Errorf("after a second: %v", err)
	}
	// The same name and length, in the same instant: only the hash differs.
	if err := other.Remove("a"); err != nil {
		t.Fatal(err)
	}
	second := add(t, other, Token{Name: "a", Scopes: Scopes()})
	if err := os.Chtimes(path, start, start); err != nil {
		t.Fatal(err)
	}
	c.pass(-time.Hour) // a clock that is set back does not keep old tokens alive
	if id, _ := accepts(server, text); id != "" {
		t.Error("the removed token is accepted")
	}
	if id, err := accepts(server, second); id == "" {
		t.Errorf("the new one: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	if id, err := accepts(server, second); id != "" || !errors.Is(err, errUnknown) {
		t.Errorf("without a file: %q, %v", id, err)
	}
}

// A file that cannot be used admits no token, and all again when it can.
func TestTokensFailClosed(t *testing.T) {
	sound := func(t *testing.T, path string) {}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		code  marchwarden.Code // of opening it
	}{
		"0644":        {chmod(0o644), marchwarden.CodeDenied},
		"0602":        {chmod(0o602), marchwarden.CodeDenied},
		"0640":        {chmod(0o640), marchwarden.CodeDenied},
		"no JSON":     {edit(`"name"`, `name`), marchwarden.CodeCorrupt},
		"cut off":     {edit("]\n}\n", ""), marchwarden.CodeCorrupt},
		"more":        {edit("]\n}\n", "]\n}\n{}"), marchwarden.CodeCorrupt},
		"version":     {edit(`"version": 1`, `"version": 2`), marchwarden.CodeCorrupt},
		"no version":  {edit(`"version": 1,`, ``), marchwarden.CodeCorrupt},
		"later field": {edit(`"name"`, `"revoked": true, "name"`), marchwarden.CodeCorrupt},
		"short hash":  {edit(`"sha256": "`, `"sha256": "00", "sha256": "0`), marchwarden.CodeCorrupt},
		"no hash":     {edit(`"sha256"`, `"created": "2026-11-01T12:00:00Z", "created"`), marchwarden.CodeCorrupt},
		"scope":       {edit(`"research"`, `"root"`), marchwarden.CodeCorrupt},
		"no scope":    {edit(`"research"`, ``), marchwarden.CodeCorrupt},
		"name":        {edit(`"name": "a"`, `"name": "a\n"`), marchwarden.CodeCorrupt},
		"twice":       {edit(`"tokens": [`, `"tokens": [{"name": "a", "sha256": "`+strings.Repeat("00", 32)+`", "scopes": ["read"], "created": "2026-11-01T12:00:00Z"},`), marchwarden.CodeCorrupt},
		"huge":        {edit("]\n}\n", "]\n}\n"+strings.Repeat(" ", 1<<20)), marchwarden.CodeCorrupt},
		"a folder": {func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}, marchwarden.CodeUnavailable},
		"a pipe": {func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), exec.Command("mkfifo", "-m", "600", path).Run()); err != nil {
				t.Skip(err)
			}
		}, marchwarden.CodeUnavailable},
		"sound": {sound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			path := filepath.Join(t.TempDir(), "tokens.json")
			server := open(t, path, clock)
			text := add(t, server, Token{Name: "a", Scopes: []string{ScopeResearch}})
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			clock.pass(time.Second)
			id, err := accepts(server, text)
			if (id == "") != (c.code != "") || err != nil && marchwarden.CodeOf(err) != marchwarden.CodeDenied {
				t.Errorf("%q, %v", id, err)
			}
			if _, err := OpenTokens(path, clock.now); marchwarden.CodeOf(err) != c.code {
				t.Errorf("opening: %v", err)
			}
			if _, err := server.Add(rand.Reader, Token{Name: "b", Scopes: Scopes()}); marchwarden.CodeOf(err) != c.code {
				t.Errorf("adding: %v", err)
			}
			if c.code == marchwarden.CodeDenied && !strings.Contains(marchwarden.HintOf(err), "chmod 600") {
				t.Errorf("the hint is %q", marchwarden.HintOf(err))
			}
			if err != nil && strings.Contains(err.Error(), text[3:11]) {
				t.Errorf("the token is in %v", err)
			}
			if err := errors.Join(os.Remove(path), os.WriteFile(path, before, 0o600)); err != nil {
				t.Fatal(err)
			}
			clock.pass(time.Second)
			if id, err := accepts(server, text); id == "" {
				t.Errorf("when it is sound again: %v", err)
			}
		})
	}
}

func chmod(mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func edit(old, replacement string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%v: no %q in %s", err, old, text)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, replacement, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A link to a tokens file stays one.
func TestTokensLink(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	link, file := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "elsewhere.json")
	add(t, open(t, file, c), Token{Name: "a", Scopes: Scopes()})
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	add(t, open(t, link, c), Token{Name: "b", Scopes: Scopes()})
	if list, err := open(t, file, c).List(); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// addMany is the environment variable by which a test process is one that adds tokens.
const addMany = "ACCESS_TEST_ADD"

func TestMain(m *testing.M) {
	if path := os.Getenv(addMany); path != "" {
		tokens, err := OpenTokens(path, time.Now)
		for i := 0; i < 10 && err == nil; i++ {
			_, err = tokens.Add(rand.Reader, Token{Name: fmt.Sprintf("p%d-%d", os.Getpid(), i), Scopes: Scopes()})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Processes and goroutines that add and remove at once lose nothing.
func TestTokensTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	c := newClock()
	tokens := open(t, path, c)
	add(t, tokens, Token{Name: "gone", Scopes: Scopes()})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), addMany+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for g := range 2 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := tokens.Add(rand.Reader, Token{Name: fmt.Sprintf("g%d-%d", g, i), Scopes: Scopes()}); err != nil {
					t.Error(err)
				}
				if _, err := accepts(tokens, "x"); err == nil {
					t.Error("accepted")
				}
			}
		})
	}
	wg.Go(func() {
		if err := tokens.Remove("gone"); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	list, err := tokens.List()
	if err != nil || len(list) != 40 || slices.ContainsFunc(list, func(t Token) bool { return t.Name == "gone" }) {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

// The time of a comparison must not say how much of a token is right. Measuring that
// would be a test that fails now and then; so the shape of the code is looked at: no
// way out of the loop, and no comparison but the one in constant time.
func TestMatchIsConstantTime(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "tokens.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "match" {
			continue
		}
		ast.Inspect(f.Body.List[1], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ReturnStmt, *ast.BranchStmt, *ast.IfStmt, *ast.SwitchStmt, *ast.BinaryExpr:
				t.Errorf("a way out of the loop: %T", n)
			case *ast.SelectorExpr:
				if n.Sel.Name == "ConstantTimeCompare" {
					calls++
				}
			}
			return true
		})
	}
	if calls != 1 {
		t.Errorf("%d comparisons in constant time", calls)
	}
}

// A scope that is gone stays in the file and grants nothing.
func TestPastScope(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	entry := func(name, text, scopes string) string {
		sum := digestOf(text)
		return `{"name":"` + name + `","sha256":"` + string(sum) + `","scopes":[` + scopes + `],"created":"2026-11-01T12:00:00Z"}`
	}
	text := `{"version":1,"tokens":[` + entry("a", "one", `"read","metrics"`) + `,` + entry("b", "two", `"metrics"`) + `]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := open(t, path, newClock())
	add(t, tokens, Token{Name: "c", Scopes: Scopes()})
	for token, want := range map[string]string{"one": "[read]", "two": "[]"} {
		if p, err := tokens.Authenticate(t.Context(), token); err != nil || fmt.Sprint(p.Scopes) != want {
			t.Errorf("%s: %v, %v", token, p, err)
		}
	}
}

func FuzzTokensFile(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1,"tokens":[{"name":"a","sha256":"` + strings.Repeat("0f", 32) + `","scopes":["read"],"created":"2026-11-01T12:00:00Z","expires":"2027-11-01T12:00:00+01:00"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := tokensFile.Parse("tokens.json", text)
		if err != nil {
			return
		}
		again, err := json.Marshal(map[string]any{"version": 1, "tokens": list})
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		read, err := tokensFile.Parse("tokens.json", again)
		if diff := cmp.Diff(list, read); err != nil || len(list) > 0 && diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		for _, e := range list {
			if checkName(e.Name) != nil || len(e.Scopes) == 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}
