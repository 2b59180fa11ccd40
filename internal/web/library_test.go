package web

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// shelf is a library in memory. A folder called wait is added when held is closed.
type shelf struct {
	mu      sync.Mutex
	folders []Folder
	kept    map[string]int // bytes by name
	began   chan struct{}
	held    chan struct{}
}

func newShelf() *shelf {
	return &shelf{kept: map[string]int{}, began: make(chan struct{}), held: make(chan struct{})}
}

func (l *shelf) Folders(context.Context) ([]Folder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.folders), nil
}

func (l *shelf) Add(_ context.Context, path string, told func(done, all int)) error {
	switch path {
	case "nowhere":
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "it <does> not exist", Hint: "make it"}
	case "wait":
		told(50, 1204)
		close(l.began)
		<-l.held
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folders = append(l.folders, Folder{Path: path, Files: 3})
	return nil
}

func (l *shelf) Remove(_ context.Context, path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.folders)
	if l.folders = slices.DeleteFunc(l.folders, func(f Folder) bool { return f.Path == path }); len(l.folders) == n {
		return marchwarden.Errorf(marchwarden.CodeNotFound, "it is not in the library")
	}
	return nil
}

func (l *shelf) Keep(name string, data []byte) error {
	if strings.HasSuffix(name, ".exe") {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "files of this kind are not read")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[name] = len(data)
	return nil
}

// handOver sends a document as the script does.
func (b *browser) handOver(name string, data []byte, token string) int {
	b.w.t.Helper()
	req, err := http.NewRequestWithContext(b.w.t.Context(), "POST", b.w.http.URL+"/library/files?name="+url.QueryEscape(name), bytes.NewReader(data))
	if err != nil {
		b.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("X-CSRF-Token", token)
	resp, err := b.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestLibraryPage(t *testing.T) {
	l := newShelf()
	w := newWorld(t, func(cfg *Config) { cfg.Library = l })
	b := w.local()
	_, text := b.get("/library")
	has(t, text, "No folder of yours is searched yet", `aria-current="page">Library`)
	if status, to, _ := b.post("/library", url.Values{"path": {" wait "}}); status != 303 || to != "/library" {
		t.Fatalf("%d %s", status, to)
	}
	<-l.began
	resp, text := b.send("GET", "/library", nil)
	has(t, text, "Reading a folder: 50 of 1,204 files")
	if resp.Header.Get("Refresh") == "" {
		t.Error("it does not come again by itself")
	}
	close(l.held)
	w.server.checks.wait(t)
	resp, text = b.send("GET", "/library", nil)
	has(t, text, "<b lang=\"\" dir=\"auto\">wait</b>")
	if lacks(t, text, "Reading a folder"); resp.Header.Get("Refresh") != "" {
		t.Error("it comes again for ever")
	}
	b.post("/library", url.Values{"path": {"nowhere"}})
	w.server.checks.wait(t)
	_, text = b.get("/library")
	has(t, text, "it &lt;does&gt; not exist", "make it", `aria-invalid="true"`)
	_, text = b.get("/library")
	lacks(t, text, "not exist") // it is told once
	if status, _, text := b.post("/library", nil); status != 400 || !strings.Contains(text, "must not be blank") {
		t.Errorf("%d", status)
	}
	if status, to, _ := b.post("/library/remove", url.Values{"path": {"wait"}}); status != 303 || to != "/library?notice=removed" || len(l.folders) != 0 {
		t.Errorf("%d %s %v", status, to, l.folders)
	}
	if status, _, _ := b.post("/library/remove", url.Values{"path": {"wait"}}); status != 404 {
		t.Errorf("%d", status)
	}
}

// wait waits until nothing is indexed or checked.
func (c *checks) wait(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	now := c.of[indexing]
	c.mu.Unlock()
	if now != nil {
		<-now.ended
	}
}

func TestHandingOver(t *testing.T) {
	l := newShelf()
	w := newWorld(t, func(cfg *Config) { cfg.Library = l })
	b := w.local()
	_, text := b.get("/library")
	token := formToken(text)
	for _, c := range []struct {
		name, token string
		bytes, want int
	}{{"notes.md", token, 3 << 20, 204}, {"a.exe", token, 1, 400}, {"large.pdf", token, maxDocument + 1, 413}, {"forged.md", "", 1, 403}, {"forged.md", "x", 1, 403}} {
		if got := b.handOver(c.name, make([]byte, c.bytes), c.token); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if len(l.kept) != 1 || l.kept["notes.md"] != 3<<20 {
		t.Errorf("kept is %v", l.kept)
	}
	if status, _, _ := b.post("/library", url.Values{"documents": {"yes"}}); status != 303 {
		t.Errorf("%d", status)
	}
	w.server.checks.wait(t)
	if len(l.folders) != 1 || l.folders[0].Path != "" {
		t.Errorf("%v", l.folders)
	}
}

// In a team no caller sees or changes the folders of the machine, whatever the token is good for.
func TestLibraryIsTheLocalUsers(t *testing.T) {
	l := newShelf()
	_, people := newTeam(t, func(cfg *Config) { cfg.Library = l }, map[string][]string{"ada": access.Scopes()})
	b := people["ada"]
	_, text := b.get("/")
	lacks(t, text, "/library")
	token := formToken(text)
	if status, _ := b.get("/library"); status != 404 {
		t.Errorf("looking: %d", status)
	}
	for _, path := range []string{"/library", "/library/remove"} {
		if status, _, _ := b.post(path, url.Values{"path": {"/etc"}}); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if got := b.handOver("a.md", []byte("x"), token); got != 404 {
		t.Errorf("handing over: %d", got)
	}
	if len(l.folders)+len(l.kept) != 0 {
		t.Errorf("%v %v", l.folders, l.kept)
	}
	if status, _ := newWorld(t, nil).local().get("/library"); status != 404 { // where there is none
		t.Errorf("without a library: %d", status)
	}
}
