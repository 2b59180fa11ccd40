package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scripttest"
)

// TestDriftScripts are scripts with a web that they can change. $SITE serves the
// folder site of the script, and finds all of its pages below $SITE/searx:
//
//	NAME.html            a page, with an ETag, for NAME
//	NAME.status          answers with this status, and the address behind it if there is one
//	NAME.slow            answers nothing
//	NAME                 anything else, such as robots.txt
func TestDriftScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/drift",
		Setup: func(e *testscript.Env) error {
			server := httptest.NewServer(folderSite(filepath.Join(e.WorkDir, "site")))
			e.Defer(func() {
				server.CloseClientConnections()
				server.Close()
			})
			home := filepath.Join(e.WorkDir, "home")
			for name, value := range map[string]string{
				"HOME": home, "KEPT": filepath.Join(home, ".marchwarden"), "SITE": server.URL, "SEARXNG_URL": server.URL + "/searx",
				"MARCHWARDEN_FETCH_ALLOW": "127.0.0.0/8", "MARCHWARDEN_SEARCH": "searxng",
			} {
				e.Setenv(name, value)
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds:                scripttest.With(nil),
		RequireExplicitExec: true,
	})
}

func folderSite(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/searx") {
			foundPages(w, r, dir)
			return
		}
		file := filepath.Join(dir, filepath.Base(r.URL.Path))
		if said, err := os.ReadFile(file + ".status"); err == nil {
			code, to, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
			if to != "" {
				w.Header().Set("Location", to)
			}
			n, _ := strconv.Atoi(code) // a wrong one is seen in the script
			w.WriteHeader(n)
			return
		}
		if _, err := os.Stat(file + ".slow"); err == nil {
			<-r.Context().Done()
			return
		}
		page, err := os.ReadFile(file + ".html")
		if err != nil {
			http.ServeFile(w, r, file)
			return
		}
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(page))
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(page) // a client that went away is its own affair
	}
}

// foundPages is a search service that finds every page.
func foundPages(w http.ResponseWriter, r *http.Request, dir string) {
	type hit struct {
		URL     string `json:"url"`
		Title   string `json:"title"`
		Content string `json:"content"`
	}
	hits := []hit{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.html")) // the pattern is a good one
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".html")
		hits = append(hits, hit{"http://" + r.Host + "/" + name, "Harbour " + name, "About the harbour."})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"query": r.FormValue("q"), "results": hits})
}
