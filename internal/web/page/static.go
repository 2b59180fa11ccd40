package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

//go:embed assets
var assets embed.FS

// Static serves what pages load. The name of a file has the hash of its content in
// it, so that browsers may keep it for good; another name is not found. It is safe
// for concurrent use.
type Static struct {
	files map[string]file   // by the name that is served
	names map[string]string // from the name in the source to the one that is served
}

type file struct {
	kind string
	body []byte
}

var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func newStatic() *Static {
	s := &Static{files: map[string]file{}, names: map[string]string{}}
	for _, name := range []string{"style.css", "chart.css", "app.js", "icon.svg"} {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic("page: " + err.Error()) // it is part of the program
		}
		s.add(name, body)
	}
	return s
}

func (s *Static) add(name string, body []byte) {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	served := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	s.names[name] = served
	s.files[served] = file{kinds[ext], body}
}

// link is the address of a file by its name in the source.
func (s *Static) link(name string) h.Link { return h.Local(StaticPath + s.names[name]) }

// ServeHTTP serves the file that the last element of the request's path names.
func (s *Static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := s.files[strings.TrimPrefix(r.URL.Path, StaticPath)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	head := w.Header()
	head.Set("Content-Type", f.kind)
	head.Set("Content-Length", strconv.Itoa(len(f.body)))
	head.Set("Cache-Control", "public, max-age=31536000, immutable")
	head.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.body) // the client is gone, so there is none to tell
	}
}

// Size is how many bytes a first visit loads besides its page.
func (s *Static) Size() int {
	n := 0
	for _, f := range s.files {
		n += len(f.body)
	}
	return n
}
