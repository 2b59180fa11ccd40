package web

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// library is a server whose one page changes when version does.
type library struct {
	version      atomic.Int32
	sent, spared atomic.Int32
	header       func(http.Header, string)
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tag := fmt.Sprintf(`"v%d"`, l.version.Load())
	l.header(w.Header(), tag)
	modified := w.Header().Get("Last-Modified")
	if r.Header.Get("If-None-Match") == tag || modified != "" && r.Header.Get("If-Modified-Since") == modified {
		l.spared.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	l.sent.Add(1)
	w.Header().Set("Content-Type", "text/plain; charset=windows-1251")
	fmt.Fprintf(w, "\xcf\xee\xf7\xe2\xe0 \xe7\xe4\xe5\xf1\xfc \xf9\xe5\xeb\xee\xf7\xed\xe0\xff, %d", l.version.Load())
}

func withTag(h http.Header, tag string) { h.Set("ETag", tag) }

func newLibrary(t *testing.T, header func(http.Header, string)) (*library, string) {
	t.Helper()
	l := &library{header: header}
	return l, serve(t, l.ServeHTTP).URL
}

func TestUnchangedPagesAreNotSentAgain(t *testing.T) {
	for name, header := range map[string]func(http.Header, string){
		"tag":  withTag,
		"date": func(h http.Header, tag string) { h.Set("Last-Modified", "Sun, 15 Nov 2026 1"+tag[2:3]+":00:00 GMT") },
	} {
		l, server := newLibrary(t, header)
		dir, store := filepath.Join(t.TempDir(), "cache"), blob.NewMem()
		fetcher := func() *Fetcher { return newFetcher(t, func(c *Config) { c.CacheDir, c.Store = dir, store }) }
		f := fetcher()
		check := func(sent, spared, version int32) {
			t.Helper()
			page, err := f.Fetch(t.Context(), server+"/soil")
			if err != nil {
				t.Fatal(err)
			}
			if text := textOf(t, f, page); text != fmt.Sprintf("Почва здесь щелочная, %d", version) {
				t.Errorf("%s: text %q", name, text)
			}
			if l.sent.Load() != sent || l.spared.Load() != spared {
				t.Errorf("%s: sent %d times and spared %d, want %d and %d", name, l.sent.Load(), l.spared.Load(), sent, spared)
			}
		}
		check(1, 0, 0)
		check(1, 1, 0)
		f = fetcher() // another process, say
		check(1, 2, 0)
		l.version.Add(1)
		check(2, 2, 1)
		check(2, 3, 1)
		store = blob.NewMem() // the bytes are gone
		f = fetcher()
		check(3, 3, 1)
		check(3, 4, 1)
	}
}

// TestOldValidatorsAreNotSent: a validator can be a visitor's number, so it has an
// end, which a server cannot put off by saying that nothing changed.
func TestOldValidatorsAreNotSent(t *testing.T) {
	l, server := newLibrary(t, withTag)
	dir, now := t.TempDir(), noon
	f := newFetcher(t, func(c *Config) { c.CacheDir, c.Now = dir, func() time.Time { return now } })
	for _, step := range []struct {
		at           time.Time
		sent, spared int32
	}{
		{noon, 1, 0},
		{noon.Add(entryLife / 2), 1, 1},
		{noon.Add(entryLife - time.Second), 1, 2},
		{noon.Add(entryLife), 2, 2},
		{noon.Add(2*entryLife - time.Second), 2, 3},
		{noon, 3, 3}, // the clock was wrong once
	} {
		now = step.at
		if _, err := f.Fetch(t.Context(), server+"/"); err != nil {
			t.Fatal(err)
		}
		if l.sent.Load() != step.sent || l.spared.Load() != step.spared {
			t.Errorf("at %v: sent %d times and spared %d, want %d and %d", step.at, l.sent.Load(), l.spared.Load(), step.sent, step.spared)
		}
	}
	if entryLife != 30*24*time.Hour {
		t.Errorf("an entry lives for %v", entryLife)
	}
}

func TestWhatIsNotRemembered(t *testing.T) {
	for name, header := range map[string]func(http.Header, string){
		"no validator": func(http.Header, string) {},
		"no-store":     func(h http.Header, tag string) { h.Set("ETag", tag); h.Set("Cache-Control", "private, No-Store") },
		"long tag":     func(h http.Header, tag string) { h.Set("ETag", `"`+strings.Repeat("x", maxTagBytes)+`"`) },
	} {
		l, server := newLibrary(t, header)
		dir := t.TempDir()
		f := newFetcher(t, func(c *Config) { c.CacheDir = dir })
		for range 2 {
			if _, err := f.Fetch(t.Context(), server+"/"); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 || l.sent.Load() != 2 {
			t.Errorf("%s: %d entries, %v; sent %d times", name, len(list), err, l.sent.Load())
		}
	}
	// A page that may not be stored any more is dropped.
	l, server := newLibrary(t, func(h http.Header, tag string) {
		h.Set("ETag", tag)
		if tag != `"v0"` {
			h.Set("Cache-Control", "no-store")
		}
	})
	dir := t.TempDir()
	f := newFetcher(t, func(c *Config) { c.CacheDir = dir })
	for want := 1; want >= 0; want-- {
		if _, err := f.Fetch(t.Context(), server+"/"); err != nil {
			t.Fatal(err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != want {
			t.Errorf("%d entries, %v; want %d", len(list), err, want)
		}
		l.version.Add(1)
	}
}

// TestDamagedEntries: whatever is in the folder, the page comes.
func TestDamagedEntries(t *testing.T) {
	l, server := newLibrary(t, withTag)
	dir := t.TempDir()
	f := newFetcher(t, func(c *Config) { c.CacheDir = dir })
	address := server + "/"
	fetchIt := func(what string) {
		t.Helper()
		before := l.sent.Load()
		if _, err := f.Fetch(t.Context(), address); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if l.sent.Load() != before+1 {
			t.Errorf("%s: the entry was used", what)
		}
	}
	fetchIt("no entry")
	name := filepath.Join(dir, cacheName(address))
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, raw := range map[string][]byte{
		"empty": nil, "torn": good[:len(good)/2], "no JSON": []byte("hello"), "other version": bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1),
		"other address": bytes.Replace(good, []byte(`/","etag`), []byte(`/x","etag`), 1), "bad reference": bytes.Replace(good, []byte("sha256:"), []byte("sha512:"), 1),
		"header injection": bytes.Replace(good, []byte(`\"v0\"`), []byte(`x\r\nX-Evil: y`), 1), "no reference": bytes.Replace(good, []byte(`"raw"`), []byte(`"ray"`), 1), "no time": bytes.Replace(good, []byte(`"sent"`), []byte(`"cent"`), 1),
		"huge": append(bytes.Repeat([]byte(" "), 1<<20), good...), "unknown reference": bytes.Replace(good, []byte("sha256:"), []byte("sha256:ffff"), 1)[:len(good)],
	} {
		if bytes.Equal(raw, good) {
			t.Fatalf("%s changes nothing", what)
		}
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		fetchIt(what)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", name); err != nil {
		t.Fatal(err)
	}
	fetchIt("a link out of the folder")
}

func TestCacheThatCannotBeUsed(t *testing.T) {
	_, server := newLibrary(t, withTag)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFetcher(t, func(c *Config) { c.CacheDir = file })
	if _, err := f.Fetch(t.Context(), server+"/"); err != nil {
		t.Errorf("the page is lost with the cache: %v", err)
	}
	if err := f.Close(); err == nil || !strings.Contains(err.Error(), "web cache") {
		t.Errorf("Close gave %v, want the fault of the cache", err)
	}
}

func TestTwoFetchersShareACache(t *testing.T) {
	_, server := newLibrary(t, withTag)
	dir := t.TempDir()
	store := blob.NewMem()
	var wg sync.WaitGroup
	for range 2 {
		f := newFetcher(t, func(c *Config) { c.CacheDir, c.Store, c.PerHost = dir, store, 4 })
		f.cache.max = 10
		for range 4 {
			wg.Go(func() {
				for i := range 40 {
					if _, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d", server, i%20)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 || len(list) > 20 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	for _, item := range list {
		if strings.Contains(item.Name(), tempMark) {
			t.Errorf("%s was left behind", item.Name())
		}
	}
}

func TestOldestEntriesGo(t *testing.T) {
	dir := t.TempDir()
	c := newCache(dir)
	c.max = 20
	defer c.close()
	at := func(i int) string { return fmt.Sprintf("https://example.org/%d", i) }
	stale := filepath.Join(dir, "x.json"+tempMark+"abc")
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(stale, past, past); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		c.save(entry{Version: cacheFormat, URL: at(i), ETag: "x", Raw: blob.Of(nil)})
		when := past.Add(time.Duration(i+100) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, cacheName(at(i))), when, when); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > 20 || len(list) < 10 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	if _, ok := c.load(at(0)); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := c.load(at(49)); !ok {
		t.Error("the newest is gone")
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("rubbish is still there")
	}
}
