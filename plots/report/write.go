package report

import (
	"embed"
	"fmt"
	"html"
	"io"
	"strings"
)

//go:embed page
var page embed.FS

// scripts are the parts of the page's program, in the order in which they run.
var scripts = []string{"data.js", "view.js", "timeline.js", "curves.js", "details.js", "tables.js", "main.js"}

// security forbids the page every request.
const security = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"

// Write writes a report of one run or of several.
func Write(w io.Writer, title string, runs []Run) error {
	e := &encoder{}
	list := []map[string]any{}
	for i := range runs {
		run, err := runs[i].encode(e)
		if err != nil {
			return fmt.Errorf("%s: %w", runs[i].Name, err)
		}
		list = append(list, run)
	}
	var data strings.Builder
	if err := e.write(&data, map[string]any{"title": title, "runs": list}); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	var program strings.Builder
	for _, name := range scripts {
		program.WriteString(asset(name))
	}
	_, err := strings.NewReplacer("{{policy}}", security, "{{title}}", html.EscapeString(title), "{{style}}", asset("page.css"),
		"{{program}}", program.String(), "{{data}}", data.String()).WriteString(w, asset("page.html"))
	return err
}

// asset is a file of the page.
func asset(name string) string {
	data, err := page.ReadFile("page/" + name)
	if err != nil {
		panic("report: " + err.Error())
	}
	return string(data)
}
