package tomlfile

import (
	"fmt"
	"strings"
)

// lineIndex finds the lines of keys by their path, such as "device[1].power.idle". The TOML
// library reports positions of syntax errors only. The files are plain enough for a scan of
// headers and "key =" at the starts of lines. A string of several lines can fool the scan; then
// an error names a wrong line, and nothing else depends on it.
type lineIndex map[string]int

func indexLines(src string) lineIndex {
	lines := lineIndex{}
	counts := map[string]int{} // elements of an array of tables so far
	prefix := ""
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(src, "\ufeff")) { // a byte order mark, which the library leaves out, too
		n++
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			header, array := strings.CutPrefix(header, "[")
			header, _, _ = strings.Cut(header, "]")
			prefix = tablePath(header, array, counts)
			lines.set(prefix, n)
			prefix += "."
			continue
		}
		if key, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			lines.set(prefix+strings.Trim(strings.TrimSpace(key), `"'`), n)
		}
	}
	return lines
}

// tablePath numbers the arrays of tables in the path of a header.
func tablePath(header string, array bool, counts map[string]int) string {
	path := ""
	parts := strings.Split(header, ".")
	for i, part := range parts {
		if path != "" {
			path += "."
		}
		path += strings.Trim(strings.TrimSpace(part), `"'`)
		if array && i == len(parts)-1 {
			counts[path]++
		}
		if n := counts[path]; n > 0 {
			path = fmt.Sprintf("%s[%d]", path, n-1)
		}
	}
	return path
}

func (x lineIndex) set(path string, line int) {
	if _, ok := x[path]; !ok {
		x[path] = line
	}
}

// Line is the line of a path, or of the nearest enclosing table that has one; 1 for none.
func (f *File) Line(path string) int {
	for path != "" {
		if n, ok := f.lines[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 1
}
