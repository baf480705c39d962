package dahl_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestImports holds every Go file, whatever its build tags, to the import table
// in ARCHITECTURE.md: a package imports only what its line lists, a package
// without a line fails, and a sub-package inherits its parent's line.
func TestImports(t *testing.T) {
	table := readImportTable(t)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || path.Dir(filepath.ToSlash(file)) == "." {
			return nil // tests at the root tie all packages together
		}
		checkImports(t, filepath.ToSlash(file), table)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImports(t *testing.T, file string, table map[string][]string) {
	t.Helper()
	pkg := path.Dir(file)
	line, ok := lineOf(pkg, table)
	if !ok {
		t.Errorf("%s: package %s has no line in the import table of ARCHITECTURE.md", file, pkg)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", file, spec.Path.Value, err)
			continue
		}
		if !allowed(name, line, pkg) {
			t.Errorf("%s: package %s may not import %q; its line allows %v", file, pkg, name, line)
		}
	}
}

// lineOf finds the line of a package or of the nearest parent that has one.
func lineOf(pkg string, table map[string][]string) ([]string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if line, ok := table[p]; ok {
			return line, true
		}
	}
	return nil, false
}

func allowed(name string, line []string, pkg string) bool {
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") && first != "dahl" {
		return true // standard library
	}
	root, _, _ := strings.Cut(pkg, "/")
	name = strings.TrimPrefix(name, "dahl/")
	if name == root || strings.HasPrefix(name, root+"/") {
		return true
	}
	for _, a := range line {
		if a == "everything" || name == a || strings.HasPrefix(name, a+"/") {
			return true
		}
	}
	return false
}

// readImportTable parses the block that begins with ```imports: lines of
// "package: what it may import", where a repository stands for its packages.
func readImportTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```imports\n")
	block, _, ok2 := strings.Cut(block, "```")
	if !ok || !ok2 {
		t.Fatal("ARCHITECTURE.md has no block that begins with ```imports")
	}
	table := map[string][]string{}
	for line := range strings.Lines(block) {
		pkg, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			t.Fatalf("import table: line %q has no colon", line)
		}
		table[pkg] = strings.Fields(rest)
	}
	return table
}
