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

// What a test that does less every day asks for, and the function that runs the
// investigator's tests over every engine where the first is given.
const (
	longerTests = "MARCHWARDEN_TEST_CLUSTER"
	wholeTests  = "MARCHWARDEN_TEST_FULL"
	onRoads     = "onRoads"
)

// A test that is skipped, wholly or in part, unless more is asked for is one that .ci/run
// asks for, by its name and with its package; and what it asks for is there.
func TestSkippedTestsAreRun(t *testing.T) {
	script, err := os.ReadFile(filepath.FromSlash("../../.ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	house, there := house(t), testNames(t, filepath.FromSlash("../.."))
	for _, variable := range []string{longerTests, wholeTests} {
		t.Run(variable, func(t *testing.T) { skippedAreRun(t, house, there, string(script), variable) })
	}
}

var braces = regexp.MustCompile(`(\S*){([^}]*)}`)

func skippedAreRun(t *testing.T, house *tree, there map[string]bool, script, variable string) {
	list := regexp.MustCompile(`(?m)^\w+='([A-Za-z|]+)'\n` + variable + `=1 go test (.*)$`).FindStringSubmatch(script)
	if list == nil {
		t.Fatalf(".ci/run runs no test with %s", variable)
	}
	names := strings.Split(list[1], "|")
	packages := braces.ReplaceAllStringFunc(list[2], func(s string) string { // as the shell does
		m := braces.FindStringSubmatch(s)
		return m[1] + strings.ReplaceAll(m[2], ",", " "+m[1])
	})
	for _, name := range names {
		if !there[name] {
			t.Errorf(".ci/run asks for %s, which is not there", name)
		}
	}
	found := 0
	for _, f := range house.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.test || !strings.HasPrefix(fn.Name.Name, "Test") || !asksForMore(fn, variable) {
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

// asksForMore reports whether a test is skipped, wholly or in part, unless a variable is
// set.
func asksForMore(fn *ast.FuncDecl, variable string) bool {
	more := false
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			more = more || f.Name == onRoads && variable == longerTests
		case *ast.SelectorExpr:
			for _, arg := range call.Args {
				text, ok := arg.(*ast.BasicLit)
				more = more || strings.HasPrefix(f.Sel.Name, "Skip") && ok && strings.Contains(text.Value, variable)
			}
		}
		return true
	})
	return more
}
