package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"pgregory.net/rapid"
)

// userFolder writes files, given as "path", "content" pairs, and opens them.
func userFolder(t *testing.T, files ...string) *Folder {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(files[i+1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestOpenFolderRefusesWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.md")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, named := range map[string]string{"": `""`, file: "file.md", filepath.Join(dir, "missing"): "missing", "nul\x00byte": "byte"} {
		_, err := OpenFolder(path)
		if !errors.Is(err, marchwarden.CodeInvalid) || marchwarden.HintOf(err) == "" || !strings.Contains(err.Error(), named) {
			t.Errorf("OpenFolder(%q) = %v, want %v with a hint and the folder's name", path, err, marchwarden.CodeInvalid)
		}
	}
}

func TestResolve(t *testing.T) {
	user := userFolder(t)
	embedded := EmbeddedFolder("embedded library", "embedded", fstest.MapFS{})
	at := func(rest string) string { return user.Name + string(filepath.Separator) + filepath.FromSlash(rest) }
	for _, test := range []struct {
		folder        *Folder
		locator, name string
	}{
		{user, at("a.md"), "a.md"},
		{user, at("sub/b c.md"), "sub/b c.md"},
		{user, at("a..md"), "a..md"},
		{user, at("../a.md"), ""},
		{user, at("sub/../a.md"), ""},
		{user, at("./a.md"), ""},
		{user, at("sub//a.md"), ""},
		{user, at("a.md/"), ""},
		{user, at(".env"), ""},
		{user, at("sub/.git/config"), ""},
		{user, user.Name, ""},
		{user, user.Name + "x/a.md", ""},
		{user, "a.md", ""},
		{user, "embedded:a.md", ""},
		{user, "", ""},
		{embedded, "embedded:a.md", "a.md"},
		{embedded, "embedded:sub/a.md", "sub/a.md"},
		{embedded, "embedded:", ""},
		{embedded, "embedded:/a.md", ""},
		{embedded, "embedded:../a.md", ""},
		{embedded, "embedded:.hidden", ""},
		{embedded, "EMBEDDED:a.md", ""},
		{embedded, at("a.md"), ""},
		{embedded, "https://example.org/a.md", ""},
	} {
		name, ok := test.folder.Resolve(test.locator)
		if name != test.name || ok != (test.name != "") {
			t.Errorf("%s: Resolve(%q) = %q, %v; want %q", test.folder.Name, test.locator, name, ok, test.name)
		}
		if ok && test.folder.Locator(name) != test.locator {
			t.Errorf("Locator(%q) = %q, want %q", name, test.folder.Locator(name), test.locator)
		}
	}
}

func TestResolveIsTheInverseOfLocator(t *testing.T) {
	folders := []*Folder{userFolder(t), EmbeddedFolder("embedded library", "embedded", fstest.MapFS{})}
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(folders).Draw(rt, "folder")
		name := rapid.StringMatching(`([a-z :%?#é.-]{1,8}/){0,3}[a-z :%?#é.-]{1,8}`).Draw(rt, "name")
		locator := f.Locator(name)
		got, ok := f.Resolve(locator)
		if !fs.ValidPath(name) { // "a/." is no name; its locator may be that of one
			if ok && f.Locator(got) != locator {
				rt.Fatalf("%q came back as %q", name, got)
			}
			return
		}
		if ok == Hidden(name) || ok && got != name {
			rt.Fatalf("%q came back as %q, %v", name, got, ok)
		}
	})
}

func TestReadStaysInside(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := userFolder(t, "a.md", "text", "sub/b.md", "more")
	for link, target := range map[string]string{"out.md": filepath.Join(outside, "secret.md"), "outdir": outside, "in.md": "a.md", "indir": "sub"} {
		if err := os.Symlink(target, filepath.Join(f.Name, link)); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err := f.Read("sub/b.md"); err != nil || string(raw) != "more" {
		t.Errorf("Read gave %q, %v", raw, err)
	}
	for _, name := range []string{"out.md", "outdir/secret.md", "in.md", "indir/b.md", "sub"} {
		if raw, err := f.Read(name); !errors.Is(err, errNotRegular) {
			t.Errorf("Read(%q) gave %q, %v; want %v", name, raw, err, errNotRegular)
		}
	}
	if _, err := f.FS.Open("outdir/secret.md"); err == nil {
		t.Error("the file system leads outside the folder")
	}
}

func TestTitleAndOrigin(t *testing.T) {
	user := userFolder(t)
	embedded := EmbeddedFolder("embedded library", "embedded", fstest.MapFS{})
	for _, test := range []struct {
		doc           extract.Document
		title, origin string // of a user's file; "" = its locator
	}{
		{extract.Document{Title: "Own", Text: "# Heading", URL: "https://www.USU.edu:443/x"}, "Own", "www.usu.edu"},
		{extract.Document{Text: "\n## Heading \x1b[31m\n\ntext"}, "Heading [31m", ""},
		{extract.Document{Text: "plain text", URL: "not a url"}, "no\u00e9.md", ""},
		{extract.Document{Text: "#\n"}, "no\u00e9.md", ""},
	} {
		const name = "sub/no\u00e9\x07.md"
		if got := Title(name, test.doc); got != test.title {
			t.Errorf("title of %+v is %q, want %q", test.doc, got, test.title)
		}
		mine, ours := test.origin, test.origin
		if mine == "" {
			mine, ours = user.Locator(name), embedded.Name
		}
		if got := user.Origin(name, test.doc); got != mine {
			t.Errorf("origin of a user's file %+v is %q, want %q", test.doc, got, mine)
		}
		if got := embedded.Origin(name, test.doc); got != ours {
			t.Errorf("origin of an embedded file %+v is %q, want %q", test.doc, got, ours)
		}
	}
}
