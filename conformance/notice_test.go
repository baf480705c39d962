package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

var update = flag.Bool("update", false, "write the notice of third parties anew")

const noticeFile = "THIRD_PARTY_NOTICES.txt"

// licenceName fits the files in which a module states its terms.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|third_party_notices)([-.].*)?$`)

// chosenLicences are files beside those that [licenceName] finds: where a module offers
// several licences, the one under which dahl uses it.
var chosenLicences = map[string]string{"github.com/golang/freetype": "licenses/ftl.txt"}

// TestNotices holds the notice of third parties to the licences of the modules whose packages
// are linked into the programs, with and without CUDA. With -update it writes the notice.
func TestNotices(t *testing.T) {
	t.Chdir("..")
	texts := map[string][]string{} // what a text covers
	for _, m := range linkedModules(t) {
		for _, file := range m.licences(t) {
			text := readLicence(t, filepath.Join(m.dir, file))
			texts[text] = append(texts[text], fmt.Sprintf("%s %s, %s", m.path, m.version, filepath.ToSlash(file)))
		}
	}
	// A distribution may keep Go's licence elsewhere; it is that of Go's other modules.
	root := must.Get(exec.Command("go", "env", "GOROOT").Output())(t)
	if file := filepath.Join(strings.TrimSpace(string(root)), "LICENSE"); exists(file) {
		text := readLicence(t, file)
		if !slices.ContainsFunc(texts[text], func(of string) bool { return strings.HasPrefix(of, "golang.org/x/sys ") }) {
			t.Errorf("%s is not the licence of golang.org/x/sys, under which the notice lists Go's own packages", file)
		}
	}
	want := notice(t, texts)
	if *update {
		must.Do(t, os.WriteFile(noticeFile, want, 0o666))
	}
	if got, err := os.ReadFile(noticeFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the linked modules say (%v); run make update", noticeFile, err)
	}
}

// notice lists each text once, under the names of what it covers.
func notice(t *testing.T, texts map[string][]string) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("dahl is under the Apache License 2.0 (LICENSE). Its programs contain packages and data of others,\nunder the terms below.\n")
	section := func(of []string, text string) {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(of, "\n"), text)
	}
	section([]string{"nn/data"}, readLicence(t, "nn/data/README.md"))
	inOrder := slices.SortedFunc(maps.Keys(texts), func(x, y string) int { return slices.Compare(texts[x], texts[y]) })
	for _, text := range inOrder {
		of := texts[text]
		if i := slices.IndexFunc(of, func(of string) bool {
			return strings.HasPrefix(of, "golang.org/x/sys ") && strings.HasSuffix(of, "LICENSE")
		}); i >= 0 {
			of = append([]string{"Go's standard library and runtime, https://go.dev/LICENSE"}, of...)
		}
		section(of, text)
	}
	return b.Bytes()
}

// linkedModule is a module with packages in a program of dahl.
type linkedModule struct {
	path, version, dir string
	packages           []string // their directories
}

// linkedModules are sorted by path.
func linkedModules(t *testing.T) (modules []*linkedModule) {
	t.Helper()
	byPath := map[string]*linkedModule{}
	for _, tags := range []string{"", "cuda"} {
		cmd := exec.Command("go", "list", "-deps", "-tags", tags, "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "dahl/cmd/dahl", "dahl/bench/dahlbench")
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		for line := range strings.Lines(string(out)) {
			part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			m := byPath[part[0]]
			if m == nil {
				m = &linkedModule{path: part[0], version: part[1], dir: part[2]}
				byPath[m.path] = m
			}
			m.packages = append(m.packages, part[3])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		modules = append(modules, byPath[path])
	}
	return modules
}

// licences are files in the directories of linked packages and above them, by names within
// the module.
func (m *linkedModule) licences(t *testing.T) (files []string) {
	t.Helper()
	dirs := map[string]bool{}
	for _, dir := range m.packages {
		for ; !dirs[dir]; dir = filepath.Dir(dir) {
			if dirs[dir] = true; dir == m.dir {
				break
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		entries := must.Get(os.ReadDir(dir))(t)
		for _, e := range entries {
			if e.Type().IsRegular() && licenceName.MatchString(e.Name()) {
				file := must.Get(filepath.Rel(m.dir, filepath.Join(dir, e.Name())))(t)
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 {
		t.Errorf("module %s %s states no licence; look for one, or do without the module", m.path, m.version)
	}
	if chosen := chosenLicences[m.path]; chosen != "" {
		files = append(files, chosen)
	}
	return files
}

// readLicence is a text without spaces at the ends of lines.
func readLicence(t *testing.T, file string) string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return strings.TrimSpace(regexp.MustCompile(`[ \t\r]+(\n|$)`).ReplaceAllString(string(text), "$1"))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
