package shell

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/naming"
)

// shells write the program by which each of them completes commands.
var shells = map[string]func(*cobra.Command, io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
}

func shellNames() []string { return slices.Sorted(maps.Keys(shells)) }

// NewCompletion is the command completion.
func NewCompletion([]string) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print what makes a shell complete commands, flags and their values",
		Long: `completion prints a program for a shell, by which the Tab key completes commands, flags and
values: machines, networks, policies, the devices of the chosen platform, figures, and directories
that hold runs.

For the present shell, and for each new one:

  bash        source <(dahl completion bash)
              dahl completion bash > ~/.local/share/bash-completion/completions/dahl
  zsh         source <(dahl completion zsh)
              dahl completion zsh > "${fpath[1]}/_dahl"
  fish        dahl completion fish | source
              dahl completion fish > ~/.config/fish/completions/dahl.fish
  powershell  dahl completion powershell | Out-String | Invoke-Expression

bash needs the package bash-completion.`,
		Example: "  source <(dahl completion bash)",
		Args:    cli.WantArgs(1, 1, "the name of a shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return cli.AsInput(naming.Unknown("shell", args[0], shellNames()))
			}
			return write(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
