package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a test without an everyday form asks for, and the function that runs the
// investigator's tests over every engine where it is given.
const (
	longerTests = "MARCHWARDEN_TEST_CLUSTER"
	onRoads     = "onRoads"
)

// A test that is skipped unless the longer ones are asked for is one that .ci/run asks
// for, by its name and with its package; and what it asks for is there.
func TestSkippedTestsAreRun(t *testing.T) {
	script, err := os.ReadFile(filepath.FromSlash("../../.ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^more='([A-Za-z|]+)'\n` + longerTests + `=1 go test (.*)$`).FindStringSubmatch(string(script))
	if list == nil {
		t.Fatal(".ci/run asks for no longer tests")
	}
	names := strings.Split(list[1], "|")
	packages := strings.NewReplacer("{", "", "}", "", ",", " ./internal/dispatch/cluster/").Replace(list[2])
	house, there := house(t), testNames(t, filepath.FromSlash("../.."))
	for _, name := range names {
		if !there[name] {
			t.Errorf(".ci/run asks for %s, which is not there", name)
		}
	}
	found := 0
	for _, f := range house.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.test || !strings.HasPrefix(fn.Name.Name, "Test") || !asksForMore(fn) {
				continue
			}
			if found++; !slices.Contains(names, fn.Name.Name) || !slices.Contains(strings.Fields(packages), "./"+f.pkg) {
				t.Errorf("%s: .ci/run does not run %s", house.where(f, fn), fn.Name.Name)
			}
		}
	}
	if found == 0 {
		t.Error("no test asks for more")
	}
}

// asksForMore reports whether a test is skipped, or does less, unless longer ones are
// asked for.
func asksForMore(fn *ast.FuncDecl) bool {
	more := false
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			more = more || f.Name == onRoads
		case *ast.SelectorExpr:
			for _, arg := range call.Args {
				text, ok := arg.(*ast.BasicLit)
				more = more || strings.HasPrefix(f.Sel.Name, "Skip") && ok && strings.Contains(text.Value, longerTests)
			}
		}
		return true
	})
	return more
}
