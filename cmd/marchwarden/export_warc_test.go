package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// A file of the user's own never gets into a WARC file, and the user is told so.
func TestExportWARC(t *testing.T) {
	program, home := asMarchwarden(t), t.TempDir()
	site := webtest.New(t, webtest.Biotech())
	write(t, filepath.Join(home, "notes", "roof.md"), "# Roof\n\nMarta Lindqvist repaired the roof of the boathouse in May.\n")
	for _, tt := range []struct {
		args        []string
		note, holds string
	}{
		{[]string{"--researcher", "files", "--library", filepath.Join(home, "notes"), "Who repaired the roof of the boathouse?"}, "0 pages written; of the other documents 1 is not of the web and stays private", ""},
		{[]string{"--researcher", "web", webtest.Startups}, "", "WARC-Target-URI: " + site.At("/nova")},
	} {
		cmd := exec.Command(program, append([]string{"ask", "-q"}, tt.args...)...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "HOME="+home, "MARCHWARDEN_FETCH_ALLOW=127.0.0.0/8", "SEARXNG_URL="+site.SearchURL(), "MARCHWARDEN_SEARCH=searxng")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var said bytes.Buffer
		a := (&app{Host: network.Host{Stderr: &said, Now: time.Now, Dir: home, Env: func(string) (string, bool) { return "", false }, UserHome: func() (string, error) { return home, nil }}}).ready()
		c, err := a.loadConfig()
		if err != nil {
			t.Fatal(err)
		}
		rec, err := a.OpenKept(c)
		if err != nil {
			t.Fatal(err)
		}
		id, err := run.FindID(rec.Traces, "last")
		if err != nil {
			t.Fatal(err)
		}
		s := run.Store{Traces: rec.Traces, Blobs: rec.Blobs}
		run, err := s.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		warc, _ := bundle.FormatOf("warc", "")
		if err := warc.Write(t.Context(), exportOf(a, c, s, run), &file); err != nil {
			t.Fatal(err)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		in, err := gzip.NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(in)
		if err != nil || !strings.HasPrefix(string(plain), "WARC/1.1\r\n") || !strings.Contains(string(plain), tt.holds) || strings.Contains(string(plain), "Lindqvist") {
			t.Errorf("%v\n%s", err, plain)
		}
		if !strings.Contains(said.String(), tt.note) || tt.note == "" && said.Len() > 0 {
			t.Errorf("said %q, want %q", said.String(), tt.note)
		}
	}
}
