package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A rule gives one sentence for every place that breaks it, with the way out.
type rule func(*tree) []string

var rules = map[string]rule{
	"imports":           imports,
	"vendors":           vendorOwners,
	"test packages":     testPackages,
	"package comments":  packageComments,
	"package names":     packageNames,
	"banned uses":       uses,
	"file sizes":        fileSizes,
	"function sizes":    functionSizes,
	"package sizes":     packageSizes,
	"interface sizes":   interfaceSizes,
	"parameters":        parameters,
	"plain words":       plainWords,
	"size of the house": houseSize,
	"type sizes":        typeSizes,
	"lone packages":     lonePackages,
}

func layerOf(pkg string) (layer, bool) {
	i := level(pkg)
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// level is the place of a package's row; -1 where there is none.
func level(pkg string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return l.pkg == pkg })
}

// mayReach reports whether a row lets its package import another of ours.
func mayReach(row layer, to string) bool {
	return slices.Contains(row.imports, to) || slices.Contains(row.imports, anything) && level(to) < level(row.pkg)
}

func imports(t *tree) []string {
	var bad []string
	for _, pkg := range t.packages() {
		if _, ok := layerOf(pkg); !ok {
			bad = append(bad, fmt.Sprintf("%s is not in the table: add a row {%q, []string{…}} to layers in internal/archtest/table_test.go, below every package it imports, and say in ARCHITECTURE.md what it owns", pkg, pkg))
		}
	}
	for _, f := range t.files {
		row, ok := layerOf(f.pkg)
		if !ok || f.test {
			continue
		}
		for _, s := range f.Imports {
			to, ours := internal(importPath(s))
			if ours && !mayReach(row, to) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s: move the code to where both may reach it, or pass what is needed in as an interface; if the import follows the direction, add it to the row of %s in layers", t.where(f, s), f.pkg, to, f.pkg))
			}
		}
	}
	return bad
}

func vendorOwners(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		for _, s := range f.Imports {
			p := importPath(s)
			if _, ours := internal(p); ours || standard(p) {
				continue
			}
			i := slices.IndexFunc(vendors, func(v vendor) bool { return p == v.module || strings.HasPrefix(p, v.module+"/") })
			if i < 0 {
				bad = append(bad, fmt.Sprintf("%s: %s is of a module that nobody owns: prefer the standard library; if it is worth a dependency, give it one owner in vendors in internal/archtest/table_test.go and a reason in the change", t.where(f, s), p))
				continue
			}
			if !mayImport(vendors[i], f) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s, which belongs to %s: ask that package for what you need", t.where(f, s), f.pkg, p, cmp.Or(strings.Join(vendors[i].owners, ", "), "tests")))
			}
		}
	}
	return bad
}

func mayImport(v vendor, f *file) bool {
	has := func(list []string) bool { return slices.Contains(list, f.pkg) || slices.Contains(list, anything) }
	if has(v.owners) && (f.pkg != "." || f.test) {
		return true
	}
	return f.forTests() && has(v.tests)
}

// testPackages keeps what is for tests out of the program.
func testPackages(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		for _, s := range f.Imports {
			p := importPath(s)
			_, ours := internal(p)
			if (ours && testPackage(p) || p == "testing" || strings.HasPrefix(p, "testing/")) && !f.forTests() {
				bad = append(bad, fmt.Sprintf("%s: %s is for tests: import it in a _test.go file or in a package whose name ends in test", t.where(f, s), p))
			}
		}
	}
	return bad
}

func packageComments(t *tree) []string {
	comments := map[string]string{}
	hasCode := map[string]bool{}
	for _, f := range t.files {
		if f.test {
			continue
		}
		hasCode[f.pkg] = true
		if f.Doc != nil {
			comments[f.pkg] += f.Doc.Text()
		}
	}
	var bad []string
	for _, pkg := range t.packages() {
		text := comments[pkg]
		if hasCode[pkg] && (len(text) < minCommentLength || !strings.HasPrefix(text, "Package ") && !strings.HasPrefix(text, "Command ")) {
			bad = append(bad, fmt.Sprintf("%s has no package comment worth the name: say above a package clause, as \"Package … \", what it owns and what it does not", pkg))
		}
	}
	return bad
}

func packageNames(t *tree) []string {
	var bad []string
	seen := map[string]bool{}
	for _, f := range t.files {
		for _, name := range []string{strings.TrimSuffix(f.Name.Name, "_test"), path.Base(f.pkg)} {
			if !seen[f.pkg] && slices.Contains(bannedNames, name) {
				seen[f.pkg] = true
				bad = append(bad, fmt.Sprintf("%s: a package called %s owns nothing in particular: name it after the one thing it owns", f.pkg, name))
			}
		}
	}
	return bad
}

// uses finds what enters through the command only.
func uses(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		if f.forTests() || program(f.pkg) {
			continue
		}
		local := map[string]string{} // the name of an import in this file → its path
		for _, s := range f.Imports {
			p := importPath(s)
			ban, ok := bannedUses[p]
			if !ok {
				continue
			}
			if _, may := useExceptions[f.pkg][p]; may && ban.names == nil {
				continue
			}
			if ban.names == nil {
				bad = append(bad, fmt.Sprintf("%s: %s is not for this program: %s", t.where(f, s), p, ban.instead))
			}
			name := path.Base(p)
			if s.Name != nil {
				name = s.Name.Name
			}
			local[name] = p
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			// An identifier with an object is a variable that hides the import.
			id, ok := sel.X.(*ast.Ident)
			if !ok || id.Obj != nil {
				return true
			}
			if useExceptions[f.pkg][local[id.Name]+"."+sel.Sel.Name] != "" {
				return true
			}
			if ban, ok := bannedUses[local[id.Name]]; ok && slices.Contains(ban.names, sel.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s.%s is for cmd/marchwarden and tests only: %s", t.where(f, sel), id.Name, sel.Sel.Name, ban.instead))
			}
			return true
		})
	}
	return bad
}

// program reports whether a package is a program, where the world comes in: the
// command, and the examples.
func program(pkg string) bool {
	return strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "examples/")
}

func fileSizes(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		if f.lines > maxFileLines {
			bad = append(bad, fmt.Sprintf("%s has %d lines, over %d: split it by what its parts are about", f.path, f.lines, maxFileLines))
		}
	}
	return bad
}

// functions calls fn for every function outside tests.
func functions(t *tree, fn func(*file, *ast.FuncDecl)) {
	for _, f := range t.files {
		if f.forTests() {
			continue
		}
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok {
				fn(f, fd)
			}
		}
	}
}

func functionSizes(t *tree) []string {
	var bad []string
	functions(t, func(f *file, fd *ast.FuncDecl) {
		if n := t.length(fd); n > maxFuncLines {
			bad = append(bad, fmt.Sprintf("%s: %s has %d lines, over %d: give its stages names of their own", t.where(f, fd), fd.Name.Name, n, maxFuncLines))
		}
	})
	if p := percentile95(t); p > maxFuncLinesP95 {
		bad = append(bad, fmt.Sprintf("the 95th percentile of all functions is %d lines, over %d: the longest ones should be split", p, maxFuncLinesP95))
	}
	return bad
}

// percentile95 is the length that 95 % of the functions outside tests keep.
func percentile95(t *tree) int {
	var lengths []int
	functions(t, func(_ *file, fd *ast.FuncDecl) { lengths = append(lengths, t.length(fd)) })
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[len(lengths)*95/100]
}

func packageSizes(t *tree) []string {
	count := map[string]int{}
	for _, f := range t.files {
		if !f.test {
			count[f.pkg]++
		}
	}
	var bad []string
	for _, pkg := range t.packages() {
		if _, excepted := sizeExceptions[pkg]; !excepted && count[pkg] > maxPackageFiles {
			bad = append(bad, fmt.Sprintf("%s has %d files, over %d, test files not counted: it owns more than one thing; split it, or join files that belong together", pkg, count[pkg], maxPackageFiles))
		}
	}
	return bad
}

func interfaceSizes(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if it, ok := spec.Type.(*ast.InterfaceType); ok && it.Methods.NumFields() > maxMethods {
				bad = append(bad, fmt.Sprintf("%s: interface %s has %d methods, over %d: split off what few callers need", t.where(f, spec), spec.Name.Name, it.Methods.NumFields(), maxMethods))
			}
			return true
		})
	}
	return bad
}

func parameters(t *tree) []string {
	var bad []string
	functions(t, func(f *file, fd *ast.FuncDecl) {
		n := 0
		for _, p := range fd.Type.Params.List {
			if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
				continue
			}
			n += max(1, len(p.Names))
		}
		if fd.Name.IsExported() && n > maxParameters {
			bad = append(bad, fmt.Sprintf("%s: %s takes %d parameters, over %d: make a Config struct with comments", t.where(f, fd), fd.Name.Name, n, maxParameters))
		}
	})
	return bad
}

// riddles are words without a thing behind them: a reader has to find out who or what is meant.
var riddles = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|everybody|(go|goes|went|gone|going) on with|so often)\b`)

func plainWords(t *tree) []string {
	var bad []string
	for _, f := range t.files {
		if f.test {
			continue
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if word := riddles.FindString(c.Text); word != "" {
					bad = append(bad, fmt.Sprintf("%s: a comment says %q: name the thing (a caller, another process, the user), or say \"resume\"", t.where(f, c), word))
				}
			}
		}
	}
	return bad
}
