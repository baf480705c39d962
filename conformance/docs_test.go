package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestDocs: every exported function, method, type, variable and constant of a hand-written file has a comment, which go doc
// shows and a reader understands without the body. One comment documents a group. Methods of unexported types are reached through an
// interface alone, which documents them, and methods of standard interfaces are documented by these. The generators of assembly
// have no importer.
func TestDocs(t *testing.T) {
	t.Chdir("..")
	eachGoFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "kernels/simd/gen/") || ast.IsGenerated(f) {
			return
		}
		for _, name := range undocumented(f) {
			t.Errorf("%s: %s has no comment; write one directly above it", fset.Position(name.Pos()), name.Name)
		}
	})
}

// standardMethods belong to interfaces of the standard library and of pflag.
var standardMethods = strings.Fields("String Error Unwrap Len Less Swap MarshalJSON UnmarshalJSON MarshalText UnmarshalText Is As Write Read Close Set Type")

// undocumented are the exported names of a file without a comment.
func undocumented(f *ast.File) (found []*ast.Ident) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			isFunction := d.Recv == nil
			if d.Doc.Text() == "" && (isFunction || receiver(d).IsExported() && !slices.Contains(standardMethods, d.Name.Name)) {
				found = append(found, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if d.Doc.Text()+s.Doc.Text()+s.Comment.Text() == "" {
						found = append(found, s.Name)
					}
				case *ast.ValueSpec:
					if d.Doc.Text()+s.Doc.Text()+s.Comment.Text() == "" {
						found = append(found, s.Names...)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(found, func(name *ast.Ident) bool { return !name.IsExported() })
}

// receiver is the name of the type of a method.
func receiver(d *ast.FuncDecl) (name *ast.Ident) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == nil { // the first one; the parameters of the type follow
			name = id
		}
		return name == nil
	})
	return name
}

// TestUndocumented has the exported names without a comment that the rule finds in a declaration.
func TestUndocumented(t *testing.T) {
	for text, want := range map[string]string{
		"func F() {}": "F", "// F is.\nfunc F() {}": "", "// Apart.\n\nfunc F() {}": "F", "func f() {}": "",
		"//go:noinline\nfunc F() {}":      "F", // a directive is no comment for readers
		"func (t *T[A]) M() {}":           "M",
		"func (t T) String() string {}":   "",
		"func (t *t[A, B]) M() {}":        "",
		"type T int":                      "T",
		"type (\n\tT int\n\tu int\n)":     "T",
		"// Both.\ntype (\n\tT int\n)":    "",
		"var A, b = 1, 2":                 "A",
		"var A = 1 // is.":                "",
		"// All.\nconst (\n\tA = 1\n)":    "",
		"const (\n\tA = 1 // is.\n\tB\n)": "B",
	} {
		var got []string
		for _, name := range undocumented(must.Get(parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.ParseComments))(t)) {
			got = append(got, name.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}
