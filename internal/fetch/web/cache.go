package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

const (
	cacheFormat   = 1
	cacheEntries  = 5000                // more than these, and the oldest go
	maxEntryBytes = 64 << 10            // of one file
	entryLife     = 30 * 24 * time.Hour // how long an entry is used: a validator can be a visitor's number
	maxTagBytes   = 1 << 10             // of a validator; longer ones are not worth sending back
	staleTemp     = time.Hour           // after which a file that was never renamed is rubbish
	tempMark      = ".tmp-"
)

// entry is one file of the cache: what to ask a server with, and where the bytes
// are that it then need not send. The file is <hash of the address>.json. Readers
// take any version but their own, and anything they cannot read, for no entry.
type entry struct {
	Version      int       `json:"version"`
	URL          string    `json:"url"` // the address that was answered, after redirects
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	ContentType  string    `json:"content_type,omitempty"`
	Raw          blob.Ref  `json:"raw"`
	Sent         time.Time `json:"sent"` // when the server sent the page; an answer that it did not change makes it no younger
}

// valid reports whether the entry is one for address that can be sent.
func (e entry) valid(address string) bool {
	return e.Version == cacheFormat && e.URL == address && e.Raw.Valid() && (e.ETag != "" || e.LastModified != "") &&
		sendable(e.ETag) && sendable(e.LastModified) && sendable(e.ContentType)
}

// young reports whether the entry may still be used. One without a time, or from
// the future, is not young.
func (e entry) young(now time.Time) bool {
	age := now.Sub(e.Sent)
	return age >= 0 && age < entryLife
}

// sendable keeps out of a request header what would break it.
func sendable(s string) bool {
	return len(s) <= maxTagBytes && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// cache is the index of what was fetched before. It is a folder of small files,
// written at once or not at all; they are not synced, because a file lost or
// torn in a power loss is only a page fetched anew. It is safe for concurrent use
// and for several processes.
type cache struct {
	dir string
	max int

	mu    sync.Mutex
	root  *os.Root // opened at first use
	err   error    // the first fault; reported by close
	count int      // entries, as far as this process knows; -1 before they were counted
}

func newCache(dir string) *cache { return &cache{dir: dir, max: cacheEntries, count: -1} }

// open returns the folder, or nil when there is none to be had.
func (c *cache) open() *os.Root {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root != nil || c.dir == "" || c.err != nil {
		return c.root
	}
	if c.err = os.MkdirAll(c.dir, 0o700); c.err == nil {
		c.root, c.err = os.OpenRoot(c.dir)
	}
	return c.root
}

func (c *cache) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = cmp.Or(c.err, err)
}

// close frees the folder and reports the first fault of the cache.
func (c *cache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.err
	if c.root != nil {
		err = errors.Join(err, c.root.Close())
	}
	c.root, c.dir, c.err = nil, "", nil
	if err != nil {
		return fmt.Errorf("web cache: %w", err)
	}
	return nil
}

func cacheName(address string) string {
	h := sha256.New()
	h.Write([]byte("marchwarden web cache entry\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(address))))
	h.Write([]byte(address))
	return hex.EncodeToString(h.Sum(nil)) + ".json"
}

// load finds the entry of an address. There is none as well when it cannot be
// read.
func (c *cache) load(address string) (entry, bool) {
	root := c.open()
	if root == nil {
		return entry{}, false
	}
	file, err := root.Open(cacheName(address))
	if err != nil {
		return entry{}, false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return entry{}, false
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxEntryBytes))
	var e entry
	if err != nil || json.Unmarshal(raw, &e) != nil || !e.valid(address) {
		return entry{}, false
	}
	return e, true
}

// save keeps an entry, or drops what is kept when the entry is of no use.
func (c *cache) save(e entry) {
	root := c.open()
	if root == nil {
		return
	}
	name := cacheName(e.URL)
	if !e.valid(e.URL) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.note(err)
		}
		return
	}
	if err := write(root, name, e); err != nil {
		c.note(err)
		return
	}
	c.trim(root)
}

func write(root *os.Root, name string, e entry) (err error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	temp := name + tempMark + rand.Text()
	if err := root.WriteFile(temp, raw, 0o600); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// trim removes the oldest files when there are too many. The folder is listed
// when this process alone would have filled it, not at every save.
func (c *cache) trim(root *os.Root) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count++; c.count > 0 && c.count <= c.max {
		return
	}
	list, err := fs.ReadDir(root.FS(), ".")
	c.err = cmp.Or(c.err, err)
	var files []fs.FileInfo
	for _, item := range list {
		if info, err := item.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	if c.count = len(files); c.count <= c.max {
		return
	}
	old := files[:len(files)-(c.max-c.max/10)]
	c.count -= len(old)
	newest := files[len(files)-1].ModTime()
	for _, f := range old {
		if strings.Contains(f.Name(), tempMark) && newest.Sub(f.ModTime()) <= staleTemp {
			continue // another process is about to rename it
		}
		if err := root.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.err = cmp.Or(c.err, err)
		}
	}
}

// known finds what can be asked for on the condition that it changed: there is
// a young entry, and its bytes are still stored.
func (f *Fetcher) known(ctx context.Context, u *url.URL) entry {
	e, ok := f.cache.load(u.String())
	if !ok || !e.young(f.cfg.Now()) {
		return entry{}
	}
	if _, err := f.cfg.Store.Stat(ctx, e.Raw); err != nil {
		return entry{}
	}
	return e
}

// remember keeps how to ask for a page again, unless its server forbids that.
func (f *Fetcher) remember(got answer, raw blob.Ref) {
	if got.known {
		return
	}
	e := entry{
		Version: cacheFormat, URL: got.url.String(), ETag: got.header.Get("ETag"), LastModified: got.header.Get("Last-Modified"),
		ContentType: got.header.Get("Content-Type"), Raw: raw, Sent: f.cfg.Now().UTC(),
	}
	if forbidsStoring(got.header["Cache-Control"]) {
		e.Raw = blob.Ref{}
	}
	f.cache.save(e)
}

// validators are what can be asked with later, unless the server forbids to keep
// them. A page out of a browser that ran scripts has none, since it is no server's;
// nor has one that was spared being sent, whose validators are older than the page
// and must not begin a new life with it.
func validators(header http.Header) (etag, modified string) {
	etag, modified = header.Get("ETag"), header.Get("Last-Modified")
	if forbidsStoring(header["Cache-Control"]) || !sendable(etag) || !sendable(modified) {
		return "", ""
	}
	return etag, modified
}

// Refetch fetches the page at was.Locator again, asking the server with what it
// gave for was whether it changed, and past the cache. Its errors are those of
// Fetch. The validators go only to the address that gave them, and for as long as
// those of the cache; the bytes of was must be in the store to be asked for so.
func (f *Fetcher) Refetch(ctx context.Context, was fetch.Page) (now fetch.Page, same bool, err error) {
	before := entry{Version: cacheFormat, URL: was.URL, ETag: was.ETag, LastModified: was.LastModified, ContentType: was.MediaType, Raw: was.Raw, Sent: was.FetchedAt}
	if !before.valid(was.URL) || !before.young(f.cfg.Now()) {
		before = entry{}
	}
	got, err := f.getAt(ctx, was.Locator, f.page(func(_ context.Context, u *url.URL) entry {
		if at, ok := locator.Canonical(u.String()); !ok || at != before.URL {
			return entry{}
		}
		return before
	}))
	if got.known {
		was.FetchedAt = f.cfg.Now().UTC()
		return was, true, nil
	}
	if err == nil {
		now, err = f.take(ctx, was.Locator, got)
	}
	return now, false, coded(ctx, err, "fetch", was.Locator)
}

func forbidsStoring(control []string) bool {
	for _, line := range control {
		for directive := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(directive), "no-store") {
				return true
			}
		}
	}
	return false
}
