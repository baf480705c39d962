package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dahl/must"
)

// TestImports holds every Go file, whatever its build tags, to the tables in
// ARCHITECTURE.md: a package imports only what its line lists, a package without a line
// fails, and a package names nothing that it never may. A sub-package without a line inherits
// its parent's; examples import what they like, as users do.
func TestImports(t *testing.T) {
	t.Chdir("..")
	imports, never := readTable(t, "imports"), readTable(t, "never")
	eachGoFile(t, func(file string, fset *token.FileSet, f *ast.File) { checkFile(t, file, fset, f, imports, never) })
}

// eachGoFile parses every Go file below the directory in force, but for those of other modules. Names have slashes.
func eachGoFile(t *testing.T, visit func(file string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	must.Do(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			fset := token.NewFileSet()
			visit(filepath.ToSlash(file), fset, must.Get(parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution))(t))
		}
		return nil
	}))
}

func checkFile(t *testing.T, file string, fset *token.FileSet, f *ast.File, imports, never map[string][]string) {
	t.Helper()
	pkg := path.Dir(file)
	line, owner := lineOf(pkg, imports)
	if owner == "" {
		t.Errorf("%s: package %s has no line in the import table of ARCHITECTURE.md", file, pkg)
		return
	}
	for _, spec := range f.Imports {
		name := pathOf(spec)
		if (name == "dahl/must" || name == "dahl/platforms/testmachine") && strings.HasSuffix(file, "_test.go") {
			continue
		}
		if !allowed(name, line, owner) && path.Base(file) != "example_test.go" {
			t.Errorf("%s: package %s may not import %q; its line allows %v", file, pkg, name, line)
		}
		if spec.Name != nil && spec.Name.Name == "." && strings.HasPrefix(name, "dahl/") {
			t.Errorf("%s: package %s imports %q without a name, which hides what is called", file, pkg, name)
		}
	}
	refused, _ := lineOf(pkg, never)
	for _, n := range namedIn(f, refused) {
		t.Errorf("%s: package %s never names %s; package plan does what it is for", fset.Position(n.Pos()), pkg, n.Sel.Name)
	}
}

func pathOf(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic("the parser takes an import path that is no string: " + spec.Path.Value)
	}
	return name
}

// namedIn are the selectors of a file that are on a list such as "schedule.Price", for a
// package of dahl by whatever name it is imported, ".Decide" for a method of anything, or
// "schedule/layout.Pro*".
func namedIn(f *ast.File, list []string) (found []*ast.SelectorExpr) {
	packages := map[string]string{} // path in dahl by name
	for _, spec := range f.Imports {
		full := pathOf(spec)
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = strings.TrimPrefix(full, "dahl/")
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of := "" // a method's
		if id, ok := sel.X.(*ast.Ident); ok {
			of = packages[id.Name]
		}
		for _, entry := range list {
			pkg, name, _ := strings.Cut(entry, ".")
			start, open := strings.CutSuffix(name, "*")
			if of == pkg && (sel.Sel.Name == name || open && strings.HasPrefix(sel.Sel.Name, start)) {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}

// TestNamedIn: the rule finds what it is for under any name, and lets pass what only looks
// like it.
func TestNamedIn(t *testing.T) {
	list := []string{"schedule.Price", "schedule/layout.Pro*", ".Decide", "simulate.Run"}
	for _, c := range []struct{ imports, body, want string }{
		{`"dahl/schedule"`, `schedule.Price(nil, nil, nil)`, "Price"},
		{`s "dahl/schedule"`, `price := s.Price; price(nil, nil, nil)`, "Price"},
		{`"dahl/schedule/layout"`, `layout.Program(nil, nil)`, "Program"},
		{`"dahl/layout"`, `layout.Program(nil, nil)`, ""},
		{`"dahl/schedule"`, `if _, err := priced().Decide(schedule.Choice{}); err != nil { return }`, "Decide"},
		{`"dahl/plan"`, `w.priced.Decide(choice)`, "Decide"},
		{`("dahl/simulate"; "dahl/plan")`, `plan.Decide(simulate.Run(plan.Predict))`, "Run"},
		{`"dahl/plan"`, `plan.Decide(nil, nil, nil, choice)`, ""},
		{`"dahl/schedule"`, `schedule.PriceList(schedule.PolicyByName("heft"))`, ""},
		{`"example.org/schedule"`, `schedule.Price()`, ""},
		{`"dahl/plan"`, `simulate.Run(w.decide())`, ""}, // a variable's method
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nimport "+c.imports+"\nfunc f() { "+c.body+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, sel := range namedIn(f, list) {
			got = append(got, sel.Sel.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s; %s: found %q, want %q", c.imports, c.body, got, c.want)
		}
	}
}

// lineOf finds the line of a package or of the nearest parent that has one, its owner.
func lineOf(pkg string, table map[string][]string) (line []string, owner string) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if line, ok := table[p]; ok {
			return line, p
		}
	}
	return nil, ""
}

// allowed reports whether a line has an import, or the import is of the line's owner or below it.
func allowed(name string, line []string, owner string) bool {
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") && first != "dahl" {
		return true // standard library
	}
	name = strings.TrimPrefix(name, "dahl/")
	for _, a := range append([]string{owner}, line...) {
		if a == "everything" || name == a || strings.HasPrefix(name, a+"/") {
			return true
		}
	}
	return false
}

// readTable parses a block of ARCHITECTURE.md by its name: lines of "package: list". In that
// of imports a repository stands for its packages.
func readTable(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```"+name+"\n")
	block, _, ok2 := strings.Cut(block, "```")
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md has no block that begins with ```%s", name)
	}
	table := map[string][]string{}
	for line := range strings.Lines(block) {
		pkg, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			t.Fatalf("table of %s: line %q has no colon", name, line)
		}
		table[pkg] = strings.Fields(rest)
	}
	return table
}
