package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"

// tree is the source of a module.
type tree struct {
	fset  *token.FileSet
	files []*file
}

// file is one Go file of the tree.
type file struct {
	*ast.File
	path  string // below the module's root, with slashes
	pkg   string // its folder, "." for the root
	test  bool   // a _test.go file
	lines int
}

// load parses every Go file below root. What the go command ignores is ignored:
// testdata, folders whose name begins with a dot or an underscore, and other modules.
func load(t *testing.T, root string) *tree {
	t.Helper()
	tr := &tree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_') {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != root {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || name[0] == '.' || name[0] == '_' {
			return nil
		}
		parsed, err := parser.ParseFile(tr.fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		tr.files = append(tr.files, &file{
			File: parsed, path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(name, "_test.go"), lines: tr.fset.File(parsed.Pos()).LineCount(),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// parsed is the house once it was read: no test changes it, and none is parallel.
var parsed *tree

// house is the module that this package is part of.
func house(t *testing.T) *tree {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			parsed = load(t, dir)
			return parsed
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above this package")
		}
		dir = up
	}
}

// packages are the folders with Go files, in order.
func (t *tree) packages() []string {
	var all []string
	for _, f := range t.files {
		all = append(all, f.pkg)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// where is the place of a node, for people and editors.
func (t *tree) where(f *file, n ast.Node) string {
	return f.path + ":" + strconv.Itoa(t.fset.Position(n.Pos()).Line)
}

// length is how many lines a node takes.
func (t *tree) length(n ast.Node) int {
	return t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
}

// forTests reports whether the file is for tests only: a test file, or part of a
// package whose name says so.
func (f *file) forTests() bool { return f.test || testPackage(f.pkg) }

func testPackage(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// importPath is the path of an import.
func importPath(s *ast.ImportSpec) string {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return s.Path.Value // unreachable: the parser checked it
	}
	return p
}

// internal turns the path of one of our own packages into its folder.
func internal(p string) (string, bool) {
	if p == modulePath {
		return ".", true
	}
	return strings.CutPrefix(p, modulePath+"/")
}

// standard reports whether a path is of the standard library, whose first element
// has no dot.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}
