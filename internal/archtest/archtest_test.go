package archtest

import (
	"slices"
	"strings"
	"testing"
)

func TestTheHouseKeepsItsRules(t *testing.T) {
	tr := house(t)
	if n := len(tr.packages()); n < 20 {
		t.Fatalf("found %d packages: the walk misses most of the tree", n)
	}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			for _, problem := range r(tr) {
				t.Error(problem)
			}
		})
	}
	t.Logf("%d files in %d packages; 95 %% of the functions have at most %d lines", len(tr.files), len(tr.packages()), percentile95(tr))
}

// The tables must be true themselves: a row names rows above it, and every row
// and owner exists.
func TestTheTablesAreConsistent(t *testing.T) {
	exists := house(t).packages()
	var above []string
	for _, l := range layers {
		if slices.Contains(above, l.pkg) {
			t.Errorf("layers has two rows for %s", l.pkg)
		}
		if !slices.Contains(exists, l.pkg) {
			t.Errorf("layers has a row for %s, which does not exist: remove it", l.pkg)
		}
		for _, to := range l.imports {
			if to != anything && !slices.Contains(above, to) {
				t.Errorf("layers lets %s import %s, which is not above it: imports go one way", l.pkg, to)
			}
		}
		above = append(above, l.pkg)
	}
	for _, v := range vendors {
		for _, pkg := range append(slices.Clone(v.owners), v.tests...) {
			if pkg != anything && !slices.Contains(exists, pkg) {
				t.Errorf("vendors gives %s to %s, which does not exist", v.module, pkg)
			}
		}
		if slices.Contains(v.owners, ".") {
			t.Errorf("vendors gives %s to the root package, which imports the standard library only", v.module)
		}
	}
	for pkg, uses := range useExceptions {
		for use, reason := range uses {
			if reason == "" || !slices.Contains(exists, pkg) {
				t.Errorf("the exception of %s for %s needs a reason and a package", pkg, use)
			}
		}
	}
	for pkg, reason := range sizeExceptions {
		if reason == "" || !slices.Contains(exists, pkg) {
			t.Errorf("the size exception of %s needs a reason and a package", pkg)
		}
	}
}

// Each rule finds what it forbids, in a tree that breaks them all, and nothing
// else there.
func TestTheRulesFindWhatTheyForbid(t *testing.T) {
	tr := load(t, "testdata/bad")
	for name, want := range map[string][]string{
		"imports": {"internal/newcomer is not in the table: add a row", "internal/util is not in the table", "internal/term/term.go:6: internal/term may not import internal/llm/llmtest", "internal/term/term.go:7: internal/term may not import internal/loop",
			"cmd/marchwarden/main.go:9: cmd/marchwarden may not import internal/eval"},
		"vendors":          {"doc.go:6: . may not import golang.org/x/sync/errgroup", "internal/newcomer/newcomer.go:8: internal/newcomer may not import modernc.org/sqlite, which belongs to internal/search/local", "internal/newcomer/newcomer.go:5: example.com/nobody is of a module that nobody owns", "internal/term/term.go:4: internal/term may not import github.com/google/go-cmp/cmp, which belongs to tests"},
		"test packages":    {"internal/term/term.go:6: " + modulePath + "/internal/llm/llmtest is for tests", "internal/term/term.go:8: testing is for tests"},
		"package comments": {"internal/newcomer has no package comment", "internal/util has no package comment"},
		"package names":    {"internal/util: a package called util"},
		"banned uses": {"newcomer.go:7: log is not for this program", "newcomer.go:11: text/template is not for this program", "newcomer.go:18: clock.Now is for cmd/marchwarden and tests only",
			"newcomer.go:18: os.Getenv", "newcomer.go:19: fmt.Println", "newcomer.go:20: os.Stderr", "newcomer.go:21: http.DefaultClient"},
		"file sizes":        {"internal/newcomer/long.go has 601 lines, over 600"},
		"function sizes":    {"internal/newcomer/long.go:3: Long has 121 lines, over 120", "95th percentile of all functions is 121 lines"},
		"package sizes":     {"internal/util has 16 files, over 15"},
		"interface sizes":   {"newcomer.go:30: interface Wide has 6 methods, over 5"},
		"parameters":        {"newcomer.go:39: Many takes 6 parameters, over 5"},
		"plain words":       {"newcomer.go:44: a comment says \"nobody\""},
		"size of the house": {"there are 2 Researchers in cmd/marchwarden, over 0"},
		"type sizes":        {"internal/newcomer/wide.go:4: Everything has 26 fields, over 25"},
		"lone packages":     {". has 7 lines, under 100", "internal/term has 9 lines, under 100", "internal/util has 16 lines, under 100"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rules[name](tr)
			for _, w := range want {
				if !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, w) }) {
					t.Errorf("did not find %q in:\n%s", w, strings.Join(got, "\n"))
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
			}
		})
	}
	if len(rules) != 15 {
		t.Errorf("there are %d rules: add the new one to the table above", len(rules))
	}
}
