package grid

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// writePage writes the figures and the table as one page that opens without a network.
func (r *gridRun) writePage(w io.Writer, figures [][]byte) error {
	lines, labels := r.table.Lines()
	data := struct {
		Name, Sentence, Build, Machine, CellsDir, TableFile, ResultsFile string
		Figures                                                          []template.HTML
		Head                                                             []string
		Lines                                                            [][]string
		Labels                                                           int
	}{r.file.Name, r.file.Sentence, r.manifest.Build.Version + ", commit " + r.manifest.Build.Commit, r.manifest.CPU, CellsDir, TableFile, ResultsFile,
		nil, lines[0], lines[1:], labels}
	for _, svg := range figures {
		_, svg, _ = bytes.Cut(svg, []byte("-->")) // an XML file's beginning
		data.Figures = append(data.Figures, template.HTML(svg))
	}
	return page.Execute(w, data)
}
