package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
)

// How large the house may be. The numbers rise only with what a user gets.
const (
	maxProductLines       = 95_000 // without tests, test kits, the lab and the examples
	maxCommandLines       = 7_000  // of cmd/marchwarden, which holds flags, wiring and printing
	maxCommandResearchers = 0      // types there that answer questions themselves
	maxPackages           = 112
	maxTypeMethods        = 60
	maxTypeFields         = 25
	minPackageLines       = 100 // below it a package needs a reason of its own
)

// lab reports whether a package measures the program or shows how to use it.
var lab = regexp.MustCompile(`^(internal/(eval|archtest)(/|$)|cmd/marchwarden-lab|tools/|examples|deploy|mcpb)`)

// houseSize counts what a reader has to go through.
func houseSize(t *tree) []string {
	product, command, researchers := 0, 0, 0
	for _, f := range t.files {
		if f.forTests() || lab.MatchString(f.pkg) {
			continue
		}
		product += f.lines
		if f.pkg != "cmd/marchwarden" {
			continue
		}
		command += f.lines
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok && fd.Recv != nil && fd.Name.Name == "Research" {
				researchers++
			}
		}
	}
	var bad []string
	for _, c := range []struct {
		what string
		n, m int
	}{{"lines of product", product, maxProductLines}, {"lines in cmd/marchwarden", command, maxCommandLines}, {"Researchers in cmd/marchwarden", researchers, maxCommandResearchers}, {"packages", len(t.packages()), maxPackages}} {
		if c.n > c.m {
			bad = append(bad, fmt.Sprintf("there are %d %s, over %d: delete something, or move it to the package that owns it", c.n, c.what, c.m))
		}
	}
	return bad
}

// typeSizes finds types that know everything.
func typeSizes(t *tree) []string {
	var bad []string
	methods := map[string]int{}
	functions(t, func(f *file, fd *ast.FuncDecl) {
		if fd.Recv == nil {
			return
		}
		on := fd.Recv.List[0].Type
		if star, ok := on.(*ast.StarExpr); ok {
			on = star.X
		}
		if id, ok := on.(*ast.Ident); ok {
			name := f.pkg + "." + id.Name
			if methods[name]++; methods[name] == maxTypeMethods+1 {
				bad = append(bad, fmt.Sprintf("%s has more than %d methods: it is several things", name, maxTypeMethods))
			}
		}
	})
	for _, f := range t.files {
		if f.forTests() {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok && st.Fields.NumFields() > maxTypeFields {
				bad = append(bad, fmt.Sprintf("%s: %s has %d fields, over %d: put those that belong together into types of their own", t.where(f, spec), spec.Name.Name, st.Fields.NumFields(), maxTypeFields))
			}
			return true
		})
	}
	return bad
}

// reasoned is how a package comment says why the package stands alone.
var reasoned = regexp.MustCompile(`(?i)\b(because|so that|apart|of its own|without|alone)\b`)

// lonePackages finds small packages that do not say why they are one.
func lonePackages(t *tree) []string {
	lines, said := map[string]int{}, map[string]bool{}
	for _, f := range t.files {
		if f.forTests() || lab.MatchString(f.pkg) || program(f.pkg) {
			continue
		}
		lines[f.pkg] += f.lines
		if f.Doc != nil && reasoned.MatchString(f.Doc.Text()) {
			said[f.pkg] = true
		}
	}
	var bad []string
	for _, pkg := range t.packages() {
		if n, ok := lines[pkg]; ok && n < minPackageLines && !said[pkg] {
			bad = append(bad, fmt.Sprintf("%s has %d lines, under %d: put it into the package that uses it, or say in its comment why it stands apart", pkg, n, minPackageLines))
		}
	}
	return bad
}
