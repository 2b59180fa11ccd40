package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Skipped counts what a walk left out without looking inside. A folder counts as
// one, whatever it holds.
type Skipped struct {
	Hidden  int `json:"hidden"`  // names that begin with a dot, .git among them
	Ignored int `json:"ignored"` // by a .gitignore or .marchwardenignore
	Links   int `json:"links"`   // symbolic links, and what else is no regular file
	Unknown int `json:"unknown"` // of a kind that is not read, by the name
	Large   int `json:"large"`   // larger than fetch.MaxFileBytes; each has a Note too
	// Kinds counts the unknown files by the endings of their names, up to maxKinds of them.
	Kinds map[string]int `json:"kinds,omitempty"`
}

const maxKinds, shownKinds = 100, 6

func (s *Skipped) unknown(name string) {
	if s.Kinds == nil {
		s.Kinds = map[string]int{}
	}
	s.Unknown++
	kind := cmp.Or(strings.ToLower(path.Ext(name)), "no ending")
	if s.Kinds[kind] > 0 || len(s.Kinds) < maxKinds {
		s.Kinds[kind]++
	}
}

// String says what was left out, and why; "" when nothing was.
func (s Skipped) String() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	kinds := slices.SortedFunc(maps.Keys(s.Kinds), func(a, b string) int { return cmp.Or(s.Kinds[b]-s.Kinds[a], strings.Compare(a, b)) })
	var counts []string
	for _, kind := range kinds[:min(len(kinds), shownKinds)] {
		counts = append(counts, fmt.Sprintf("%s %d", kind, s.Kinds[kind]))
	}
	if len(kinds) > shownKinds {
		counts = append(counts, "…")
	}
	add(s.Unknown, "of kinds that are not read ("+strings.Join(counts, ", ")+")")
	add(s.Hidden, "hidden")
	add(s.Ignored, "named by a .gitignore or .marchwardenignore")
	add(s.Links, "links")
	add(s.Large, "too large")
	return strings.Join(parts, ", ")
}

// Note is a file of which nothing can be found, and why.
type Note struct {
	Name   string `json:"name"` // within the folder
	Reason string `json:"reason"`
}

// entry is a file that should be in the index.
type entry struct {
	name  string
	size  int64
	mtime int64 // nanoseconds since 1970; 0 = unknown
}

// listing is what a walk found, in order of name.
type listing struct {
	entries []entry
	skipped Skipped
	notes   []Note
}

type walker struct {
	ctx     context.Context
	fsys    fs.FS
	ignores map[string]*ignoreSet // of the folders entered so far
	out     listing
}

// walk lists the files of a folder that should be in the index. Only a root that
// cannot be read is an error; every other trouble is a note.
func walk(ctx context.Context, fsys fs.FS) (listing, error) {
	w := &walker{ctx: ctx, fsys: fsys, ignores: map[string]*ignoreSet{}}
	if err := fs.WalkDir(fsys, ".", w.visit); err != nil {
		return listing{}, fmt.Errorf("walk folder: %w", err)
	}
	return w.out, nil
}

// visit is called for a folder before and, when it cannot be listed, after its
// entry was seen.
func (w *walker) visit(name string, d fs.DirEntry, err error) error {
	if ctxErr := w.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if err != nil {
		if name == "." {
			return err
		}
		w.note(name, durable.Cause(err))
		return nil
	}
	parent := w.ignores[path.Dir(name)]
	switch {
	case name == ".":
		w.ignores["."] = w.readIgnores(".", nil)
		return nil
	case !utf8.ValidString(name):
		w.note(strings.ToValidUTF8(name, "\ufffd"), "name is not valid UTF-8")
		return skip(d)
	case fetch.Hidden(path.Base(name)):
		w.out.skipped.Hidden++
		return skip(d)
	case parent.ignored(name, d.IsDir()):
		w.out.skipped.Ignored++
		return skip(d)
	case d.IsDir():
		w.ignores[name] = w.readIgnores(name, parent)
		return nil
	}
	w.file(name, d)
	return nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (w *walker) file(name string, d fs.DirEntry) {
	switch {
	case !d.Type().IsRegular():
		w.out.skipped.Links++
		return
	case !extract.Known(name):
		w.out.skipped.unknown(name)
		return
	}
	info, err := d.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // removed since the folder was listed
	case err != nil:
		w.note(name, durable.Cause(err))
		return
	case info.Size() > fetch.MaxFileBytes:
		w.out.skipped.Large++
		w.note(name, fmt.Sprintf("larger than %d MiB", fetch.MaxFileBytes>>20))
		return
	}
	e := entry{name: name, size: info.Size()}
	if !info.ModTime().IsZero() {
		e.mtime = info.ModTime().UnixNano()
	}
	w.out.entries = append(w.out.entries, e)
}

// maxIgnoreBytes bounds what is read of an ignore file; real ones are far smaller.
const maxIgnoreBytes = 1 << 20

// readIgnores returns the rules for what is in dir: its own files' and, where
// they say nothing, its parent's.
func (w *walker) readIgnores(dir string, parent *ignoreSet) *ignoreSet {
	set := &ignoreSet{parent: parent, dir: dir}
	for _, base := range ignoreFiles {
		name := path.Join(dir, base)
		info, err := fs.Lstat(w.fsys, name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // git does not follow links here either
		}
		text, err := readHead(w.fsys, name)
		if err != nil {
			w.note(name, durable.Cause(err))
			continue
		}
		set.rules = append(set.rules, parseIgnore(text)...)
	}
	if len(set.rules) == 0 {
		return parent
	}
	return set
}

func readHead(fsys fs.FS, name string) (string, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreBytes))
	return string(text), err
}

func (w *walker) note(name, reason string) {
	w.out.notes = append(w.out.notes, Note{Name: name, Reason: reason})
}

// ignoreFiles are read in every folder, in this order: the later one wins.
var ignoreFiles = []string{".gitignore", ".marchwardenignore"}

// ignoreRule is one line of an ignore file. The rules are git's:
//
//	*.log       files and folders of that name at any depth
//	/build      only beside the ignore file
//	doc/*.txt   relative to the ignore file, since it has a slash inside
//	cache/      folders only
//	a/**/b      any number of folders between, none too
//	!keep.log   takes back what an earlier rule ignored
type ignoreRule struct {
	segments []string // of the pattern, "**" for any number of folders
	anyDepth bool     // the pattern has no slash: it is about the last part of a path
	dirOnly  bool
	negate   bool
}

// ignoreSet is what the ignore files of one folder say, and of those above it.
type ignoreSet struct {
	parent *ignoreSet
	dir    string // the folder of the ignore files, "." for the root
	rules  []ignoreRule
}

// parseIgnore reads the lines of an ignore file. A line that is no valid pattern
// matches nothing, as with git.
func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = trimTrailingSpaces(strings.TrimRight(line, "\r\n"))
		if strings.HasPrefix(line, "#") {
			continue
		}
		var rule ignoreRule
		line, rule.negate = strings.CutPrefix(line, "!")
		line, rule.dirOnly = strings.CutSuffix(line, "/")
		rule.anyDepth = !strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		for segment := range strings.SplitSeq(line, "/") {
			n := len(rule.segments)
			if segment == "**" && n > 0 && rule.segments[n-1] == "**" {
				continue
			}
			rule.segments = append(rule.segments, strings.ReplaceAll(segment, "[!", "[^"))
		}
		if n := len(rule.segments); n > 1 && rule.segments[n-1] == "**" {
			rule.segments = append(rule.segments, "*") // "a/**" is what is inside a, not a itself
		}
		rules = append(rules, rule)
	}
	return rules
}

// trimTrailingSpaces keeps a last space that a backslash protects.
func trimTrailingSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	slashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if slashes%2 == 1 && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

// ignored reports whether the path, relative to the root of the folder, is
// ignored. The last rule that matches decides, and a deeper file comes after
// those above it. A walk must not enter an ignored folder: nothing inside it can be taken back.
func (s *ignoreSet) ignored(name string, isDir bool) bool {
	for ; s != nil; s = s.parent {
		rel := name
		if s.dir != "." {
			rel = strings.TrimPrefix(name, s.dir+"/")
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if s.rules[i].matches(rel, isDir) {
				return !s.rules[i].negate
			}
		}
	}
	return false
}

func (r ignoreRule) matches(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anyDepth {
		return matchSegment(r.segments[0], path.Base(rel))
	}
	return matchSegments(r.segments, strings.Split(rel, "/"))
}

func matchSegment(pattern, name string) bool {
	if pattern == "**" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// matchSegments goes back to the last "**" only, which is enough, since a "**"
// can take over whatever an earlier one could; hostile patterns stay cheap.
func matchSegments(pattern, name []string) bool {
	p, n, star, resume := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, resume = p, n
			p++
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p, n = p+1, n+1
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}
