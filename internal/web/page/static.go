package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var assets embed.FS

// Sheet is a style sheet of another package.
type Sheet struct {
	Name string // such as "chart.css"
	CSS  []byte
}

// Static serves what pages load. The name of a file has the hash of its content in
// it, so that browsers may keep it for good; another name is not found. It is safe
// for concurrent use.
type Static struct {
	files  map[string]file   // by the name that is served
	names  map[string]string // from the name in the source to the one that is served
	sheets func() []string   // addresses of all style sheets, in their order
}

type file struct {
	kind string
	body []byte
}

// kinds are the media types of what is served.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func newStatic(sheets []Sheet) (*Static, error) {
	s := &Static{files: map[string]file{}, names: map[string]string{}}
	addresses := []string{}
	for _, name := range []string{"style.css", "app.js", "icon.svg"} {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		s.add(name, body)
	}
	for _, sheet := range append([]Sheet{{Name: "style.css"}}, sheets...) {
		if path.Ext(sheet.Name) != ".css" || path.Base(sheet.Name) != sheet.Name {
			return nil, fmt.Errorf("%q is no name of a style sheet", sheet.Name)
		}
		if sheet.Name != "style.css" {
			s.add(sheet.Name, sheet.CSS)
		}
		addresses = append(addresses, s.path(sheet.Name))
	}
	s.sheets = func() []string { return addresses }
	return s, nil
}

func (s *Static) add(name string, body []byte) {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	served := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	s.names[name] = served
	s.files[served] = file{kinds[ext], body}
}

// path is the address of a file by its name in the source.
func (s *Static) path(name string) string { return StaticPath + s.names[name] }

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
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
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
