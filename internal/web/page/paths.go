package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// The addresses that pages lead to. Forms that change something are sent by POST;
// their fields are named in the comments. All of them carry "csrf" as well.
const (
	AskPath     = "/"               // GET: the form; ?from=ID fills it with an earlier question
	SubmitPath  = "/ask"            // POST: question, context, depth, format, token_budget, max_sources, researcher (repeated), follow
	HistoryPath = "/history"        // GET: q, status (repeated), researcher (repeated), offset
	LibraryPath = "/library"        // GET: the folders; POST: path, or documents for those that were handed over
	DropPath    = "/library/remove" // POST: path
	UploadPath  = "/library/files"  // POST ?name=NAME: a document, by the script
	WatchPath   = "/watch"          // GET: the watched questions
	InPath      = "/in"             // GET: the form; POST: token, next
	OutPath     = "/out"            // POST
	StaticPath  = "/static/"        // GET: what Static serves
	runsPath    = "/runs/"
)

// Act is something that is done with a run, and the last element of its address.
type Act string

// The acts. Those that change something are POST.
const (
	Cancel Act = "cancel" // POST
	Resume Act = "resume" // POST: token_budget, or none to use what is left
	Rerun  Act = "rerun"  // POST: the run again from its record, the results compared
	Check  Act = "drift"  // POST: fetch the sources again; GET: the last report
	Delete Act = "delete" // GET: Deletion; POST: confirmed=yes
	Follow Act = "watch"  // POST: watch the question
	Events Act = "events" // GET: the event stream; events "picture" (the live fragment), "over", "oops" (JSON with message and hint)
	Peek   Act = "panel"  // GET ?source=N: the panel alone, for the script
)

// RunPath is the address of a run: its answer, or its progress while there is none.
// The answer takes ?source=N for the source in the panel.
func RunPath(id string) string { return runsPath + url.PathEscape(id) }

// ActPath is the address of an act on a run.
func ActPath(id string, act Act) string { return RunPath(id) + "/" + url.PathEscape(string(act)) }

// UnwatchPath is where the watching of a question is ended, by POST.
func UnwatchPath(id string) string { return WatchPath + "/" + url.PathEscape(id) + "/remove" }

// ExportPath is the address of a run in another form.
func ExportPath(id, format string) string { return RunPath(id) + "/export/" + url.PathEscape(format) }

// SourcePath is the address of the page of a citation's whole source, at the excerpt.
func SourcePath(id string, number int) string {
	n := strconv.Itoa(number)
	return RunPath(id) + "/source/" + n + "#c" + n
}

// PicturePath is the address of a picture of the PDF page that a citation is from.
func PicturePath(id string, number int) string {
	return RunPath(id) + "/source/" + strconv.Itoa(number) + "/page"
}

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

//go:embed assets
var assets embed.FS

// Static serves what pages load. The name of a file has the hash of its content in
// it, so that browsers may keep it for good; another name is not found. It is safe
// for concurrent use.
type Static struct {
	files map[string][]byte // by the name that is served
	names map[string]string // from the name in the source to the one that is served
}

var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func newStatic() *Static {
	s := &Static{files: map[string][]byte{}, names: map[string]string{}}
	for _, name := range []string{"style.css", "app.js", "icon.svg"} {
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
	s.names[name], s.files[served] = served, body
}

// link is the address of a file by its name in the source.
func (s *Static) link(name string) h.Link { return h.Local(StaticPath + s.names[name]) }

// ServeHTTP serves the file that the last element of the request's path names, by GET and HEAD.
func (s *Static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := s.files[strings.TrimPrefix(r.URL.Path, StaticPath)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", kinds[path.Ext(r.URL.Path)])
	head.Set("Cache-Control", "public, max-age=31536000, immutable")
	head.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
