package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// ManName is the name of a command's page in section 1 of the manual: "dahl-plan".
func ManName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// WriteMan writes the manual page of a command, in the macros of man(7), from the texts that its
// --help prints.
func WriteMan(w io.Writer, c *cobra.Command) error {
	c.InitDefaultHelpFlag()
	m := &manPage{}
	m.macro("TH", strings.ToUpper(ManName(c)), "1", "", c.Root().Name()+" "+ThisBuild().Version, c.Root().Name()+" manual")
	m.section("NAME")
	m.line(manEscape(ManName(c)) + ` \- ` + manEscape(c.Short))
	m.section("SYNOPSIS")
	synopsis := c.UseLine()
	if c.HasAvailableSubCommands() {
		synopsis = c.CommandPath() + " COMMAND"
	}
	m.line(`.B ` + manEscape(synopsis))
	m.section("DESCRIPTION")
	m.text(c.Long)
	m.commands(c)
	m.section("OPTIONS")
	eachFlag(c.Flags(), func(head, text string) {
		m.line(".TP")
		m.line(`\fB` + manEscape(strings.TrimSpace(head)) + `\fR`)
		m.line(manEscape(text))
	})
	if c.HasExample() {
		m.section("EXAMPLES")
		m.verbatim(strings.Split(c.Example, "\n"))
	}
	m.section("EXIT STATUS")
	m.text(exitStatus)
	if c.HasParent() {
		m.section("SEE ALSO")
		m.line(`\fB` + manEscape(ManName(c.Parent())) + `\fR(1)`)
	}
	_, err := io.WriteString(w, m.String())
	return err
}

var exitStatus = fmt.Sprintf(`%d: all was done. %d: the run failed. %d: what was given cannot be used, and one line says why.
128 and the number of a signal: the signal ended it.`, ExitOK, ExitFailed, ExitBadInput)

// manPage is a page that is being written.
type manPage struct{ strings.Builder }

func (m *manPage) line(text string) { m.WriteString(text + "\n") }

// macro writes a request whose arguments may have spaces.
func (m *manPage) macro(name string, args ...string) {
	for i := range args {
		args[i] = `"` + strings.ReplaceAll(manEscape(args[i]), `"`, `\(dq`) + `"`
	}
	m.line("." + name + " " + strings.Join(args, " "))
}

func (m *manPage) section(title string) { m.line(".SH " + title) }

// text writes paragraphs. Those with an indented line keep their lines.
func (m *manPage) text(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			m.line(".PP")
		}
		if lines := strings.Split(paragraph, "\n"); strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n  ") {
			m.verbatim(lines)
		} else {
			m.line(manEscape(strings.Join(strings.Fields(paragraph), " ")))
		}
	}
}

// verbatim writes lines as they are.
func (m *manPage) verbatim(lines []string) {
	m.line(".nf")
	for _, l := range lines {
		m.line(manEscape(l))
	}
	m.line(".fi")
}

// commands lists the commands below one.
func (m *manPage) commands(c *cobra.Command) {
	if c.HasAvailableSubCommands() {
		m.section("COMMANDS")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			m.line(".TP")
			m.line(`\fB` + manEscape(ManName(sub)) + `\fR(1)`)
			m.line(manEscape(sub.Short))
		}
	}
}

// manEscape writes a text so that nothing in it is a request, an escape or another dash or quote.
func manEscape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	var b strings.Builder
	if strings.HasPrefix(text, ".") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		if r > unicode.MaxASCII {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
