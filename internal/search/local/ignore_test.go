package local

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

func walked(t testing.TB, files ...string) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	list, err := walk(t.Context(), fsys)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list.entries {
		names = append(names, e.name)
	}
	return names
}

func TestIgnoreFiles(t *testing.T) {
	for _, test := range []struct {
		name, ignore string
		files        string
		want         string
	}{
		{"name at any depth", "*.log", "a.log b.md sub/c.log sub/d.md", "b.md sub/d.md"},
		{"anchored", "/build.md", "build.md sub/build.md", "sub/build.md"},
		{"slash inside anchors", "doc/x.md", "doc/x.md a/doc/x.md", "a/doc/x.md"},
		{"folder only", "out/", "out/a.md sub/out/b.md c/out.md", "c/out.md"},
		{"folder-only rule and a file", "out.md/", "out.md", "out.md"},
		{"negation", "*.md\n!keep.md", "a.md keep.md sub/keep.md", "keep.md sub/keep.md"},
		{"last rule wins", "!keep.md\n*.md", "keep.md", ""},
		{"nothing inside an ignored folder comes back", "sub/\n!sub/keep.md", "sub/keep.md a.md", "a.md"},
		{"its content is another matter", "sub/*\n!sub/keep.md", "sub/keep.md sub/b.md", "sub/keep.md"},
		{"two stars between", "a/**/b.md", "a/b.md a/x/b.md a/x/y/b.md b.md", "b.md"},
		{"two stars in front", "**/b.md", "b.md x/b.md x/c.md", "x/c.md"},
		{"two stars behind", "a/**", "a/b.md a/x/c.md d/a/e.md", "d/a/e.md"},
		{"question mark and classes", "?.md\n[xy]z.md\n[!a]q.md", "a.md ab.md xz.md wz.md aq.md bq.md", "ab.md aq.md wz.md"},
		{"comments, blanks, spaces", "# b.md\n\n  \na.md   \r\n", "a.md b.md", "b.md"},
		{"escapes", "\\#a.md\n\\!b.md", "#a.md !b.md c.md", "c.md"},
		{"bad pattern matches nothing", "[\n[a\n", "a.md", "a.md"},
		{"regular expressions are not", "c++.md\n(x).md\na|b.md", "c++.md cc.md (x).md x.md a.md b.md", "a.md b.md cc.md x.md"},
		{"byte order mark", "\ufeffa.md", "a.md b.md", "b.md"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := []string{".gitignore", test.ignore}
			for _, f := range strings.Fields(test.files) {
				files = append(files, f, "text")
			}
			equal(t, "walked", walked(t, files...), append([]string{}, strings.Fields(test.want)...))
		})
	}
}

func TestIgnoreFilesAtEveryLevel(t *testing.T) {
	got := walked(t,
		".gitignore", "*.txt\nnode_modules/", "a.txt", "", "b.md", "",
		"node_modules/x.md", "", "sub/node_modules/deep/x.md", "",
		"sub/.gitignore", "!keep.txt\n/only.md", "sub/keep.txt", "", "sub/drop.txt", "", "sub/only.md", "", "sub/in/only.md", "", "sub/in/keep.txt", "",
		"sub/in/.marchwardenignore", "keep.txt",
		"own/.gitignore", "z.md", "own/.marchwardenignore", "!z.md", "own/z.md", "")
	equal(t, "walked", got, []string{"b.md", "own/z.md", "sub/in/only.md", "sub/keep.txt"})
}

// TestIgnoreAgreesWithGit asks git about random rules and names.
func TestIgnoreAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || testing.Short() {
		t.Skip("needs git and some seconds")
	}
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "?", "**", "[ab]", "[!a]", "*b", "\\a", "a b"})
	rule := rapid.Custom(func(rt *rapid.T) string {
		parts := rapid.SliceOfN(segment, 1, 3).Draw(rt, "parts")
		prefix := rapid.SampledFrom([]string{"", "", "/", "!", "!/"}).Draw(rt, "prefix")
		suffix := rapid.SampledFrom([]string{"", "", "/", " "}).Draw(rt, "suffix")
		return prefix + strings.Join(parts, "/") + suffix
	})
	names := rapid.SampledFrom([]string{"a", "b", "ab", "abb", "bb", "a b"})
	dir := t.TempDir()
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		t.Skipf("git init: %v %s", err, out)
	}
	rapid.Check(t, func(rt *rapid.T) {
		rules := rapid.SliceOfN(rule, 1, 4).Draw(rt, "rules")
		name := strings.Join(rapid.SliceOfN(names, 1, 4).Draw(rt, "name"), "/")
		write(t, filepath.Join(dir, ".gitignore"), strings.Join(rules, "\n"))
		// The index is not looked at, so that the name alone decides.
		cmd := exec.Command(git, "-C", dir, "check-ignore", "-q", "--no-index", "--", name)
		want := cmd.Run() == nil
		set := &ignoreSet{dir: ".", rules: parseIgnore(strings.Join(rules, "\n"))}
		got := false
		parts := strings.Split(name, "/")
		for i := range parts { // as a walk would: an ignored folder is not entered
			got = got || set.ignored(strings.Join(parts[:i+1], "/"), i < len(parts)-1)
		}
		if got != want {
			rt.Fatalf("rules %q: %q ignored %v, git says %v", rules, name, got, want)
		}
	})
}

func TestHostilePatternIsCheap(t *testing.T) {
	rules := parseIgnore("/" + strings.Repeat("**/a/", 200) + "x\n" + strings.Repeat("a*", 200) + "x")
	set := &ignoreSet{dir: ".", rules: rules}
	name := strings.Join(slices.Repeat([]string{"a"}, 300), "/") + "/" + strings.Repeat("a", 250)
	if set.ignored(name, false) {
		t.Error("matched, want no match")
	}
}
