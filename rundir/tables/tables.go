// Package tables writes cells of CSV and Markdown whose texts come from files of others. A spreadsheet computes none of
// them, and a page shows their HTML as text. Numbers are written as they are. Read [WriteCSV] and [Markdown] first.
package tables

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// formulaBegins are the characters that begin a formula in a spreadsheet, or are skipped before
// one.
const formulaBegins = "=+-@\t\r\n"

// WriteCSV writes lines of cells. A text that a spreadsheet would compute gets an apostrophe before it, and so stays a
// text.
func WriteCSV(w io.Writer, lines [][]string) error {
	out := csv.NewWriter(w)
	for _, line := range lines {
		safe := make([]string, len(line))
		for i, cell := range line {
			safe[i] = text(cell)
		}
		out.Write(safe)
	}
	out.Flush() // an error of any line is kept
	return out.Error()
}

// text is a cell that is no formula. Numbers stay as they are.
func text(cell string) string {
	if cell == "" || !strings.ContainsRune(formulaBegins, rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}

// markdown makes a text what it is in Markdown: no HTML, no link, no code, no emphasis and no end of a cell or a line.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`, "`", "\\`",
	"*", `\*`, "_", `\_`, "~", `\~`,
	"\r\n", " ", "\n", " ", "\r", " ")

// Markdown is a text as a cell of a table in Markdown, or as part of a line.
func Markdown(text string) string { return markdown.Replace(text) }
