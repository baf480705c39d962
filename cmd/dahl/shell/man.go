package shell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/rundir/durable"
)

// NewMan is the command man.
func NewMan([]string) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "man --out DIR",
		Short: "write the manual pages of all commands",
		Long: `man writes the texts of --help as manual pages, dahl.1, dahl-simulate.1 and so on, into a
directory. They are read with man -l, or with man where the directory is a man1 of MANPATH.`,
		Example: "  dahl man --out ~/.local/share/man/man1\n  man -l ~/.local/share/man/man1/dahl-execute.1",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return cli.InputErrorf("name a directory with --out, such as --out ~/.local/share/man/man1")
			}
			return writeManual(cmd.OutOrStdout(), cmd.Root(), out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`directory` for the pages")
	return cmd
}

// writeManual writes the page of every command and says where they are.
func writeManual(stdout io.Writer, root *cobra.Command, dir string) error {
	pages := cli.Commands(root)
	path := func(page *cobra.Command) string { return filepath.Join(dir, cli.ManName(page)+".1") }
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.InputErrorf("--out %s: %w", dir, err)
	}
	if err := cli.CheckWritable(path(root)); err != nil {
		return err
	}
	for _, page := range pages {
		if err := durable.Write(path(page), func(w io.Writer) error { return cli.WriteMan(w, page) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%d pages in %s; read one with: man -l %s\n", len(pages), dir, path(root))
	return nil
}
