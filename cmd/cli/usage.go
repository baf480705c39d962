package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/naming"
)

// ownWords gives a tree of commands our texts where cobra and pflag have theirs.
func ownWords(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelp())
}

// listError matches pflag's message about a number in a list, which has the words of package
// strconv.
var listError = regexp.MustCompile(`strconv\.\w+: parsing ("[^"]*"): .*`)

// flagError turns an error of pflag into one line with the mistake and its repair.
func flagError(cmd *cobra.Command, err error) error {
	var absent *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &absent):
		return unknownFlag(cmd, absent)
	case errors.As(err, &empty):
		name, text := pflag.UnquoteUsage(empty.GetFlag())
		return fmt.Errorf("--%s has no value; write --%s %s: %s", empty.GetFlag().Name, empty.GetFlag().Name, strings.ToUpper(name), text)
	case errors.As(err, &bad):
		cause := listError.ReplaceAllString(errors.Unwrap(bad).Error(), "$1 is no integer")
		if wanted, ok := strings.CutPrefix(cause, "must be "); ok {
			cause = "want " + wanted
		}
		return fmt.Errorf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), cause)
	}
	return err
}

// unknownFlag suggests the flag that was meant: also where it has one dash, as in -batch.
func unknownFlag(cmd *cobra.Command, absent *pflag.NotExistError) error {
	name, dashes := absent.GetSpecifiedName(), "--"
	if short := absent.GetSpecifiedShortnames(); short != "" {
		name, dashes = short, "-"
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	hint := ""
	word, _, _ := strings.Cut(name, "=")
	if near := naming.Nearest(word, known); near != "" {
		hint = "; did you mean --" + near
	}
	return fmt.Errorf("there is no flag %s%s%s", dashes, name, hint)
}

// unknownCommand is the error of a first word that is no command of the tree; nil means that it is one.
func unknownCommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err == nil {
		return nil
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "-") {
			return fmt.Errorf("there is no command %q%s", word, naming.DidYouMean(word, commandNames(cmd)))
		}
	}
	return err
}

// Commands lists the commands of a tree that help shows, each after the one above it.
func Commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, Commands(sub)...)
		}
	}
	return all
}

// Words are those that call a command, behind the name of the program: "experiment run".
func Words(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
}

func commandNames(of *cobra.Command) (list []string) {
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, c.Name())
		}
	}
	return list
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "explain a command",
		Long:  "help prints what the flag --help of a command prints.",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var some []string
			for _, name := range commandNames(cmd.Root()) {
				if len(args) == 0 && strings.HasPrefix(name, begin) {
					some = append(some, name)
				}
			}
			return some, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unknownCommand(cmd.Root(), args); err != nil {
				return AsInput(err)
			}
			of, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("%s has no command %q%s", of.CommandPath(), rest[0], naming.DidYouMean(rest[0], commandNames(of)))
			}
			if err != nil {
				return AsInput(err)
			}
			of.InitDefaultHelpFlag()
			of.SetOut(cmd.OutOrStdout())
			return of.Help()
		},
	}
}

// helpColumns is the width of help texts.
const helpColumns = 110

// usage prints how a command is called, with its flags.
func usage(c *cobra.Command) error {
	w := c.OutOrStderr()
	fmt.Fprint(w, "Usage:\n")
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(w, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	if c.HasAvailableFlags() {
		fmt.Fprint(w, "\nFlags:\n")
		printFlags(w, c.Flags())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s COMMAND --help explains a command.\n", c.CommandPath())
	}
	return nil
}

func printFlags(w io.Writer, flags *pflag.FlagSet) {
	width := 0
	eachFlag(flags, func(head, _ string) { width = max(width, len(head)) })
	eachFlag(flags, func(head, text string) {
		for i, line := range wrap(text, helpColumns-width-4) {
			if i > 0 {
				head = ""
			}
			fmt.Fprintf(w, "  %-*s  %s\n", width, head, line)
		}
	})
}

// eachFlag visits the flags that help shows: how a flag is written, and what it does.
func eachFlag(flags *pflag.FlagSet, visit func(head, text string)) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		head := "    --" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", --" + f.Name
		}
		switch isBool := f.Value.Type() == "bool"; {
		case isBool && f.DefValue == "true":
			head += "=true|false"
		case !isBool && f.NoOptDefVal != "":
			head += "[=" + value + "]"
		case !isBool:
			head += " " + value
		}
		switch d := f.DefValue; d {
		case "", "0", "0s", "[]", "false": // the text says what they stand for
		default:
			text += " (default: " + strings.Trim(d, "[]") + ")"
		}
		visit(head, text)
	})
}

// wrap breaks a text between words so that lines are no wider, except for a word that is.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// given is a number of arguments with its verb.
func given(arguments int) string {
	switch arguments {
	case 0:
		return "no argument is"
	case 1:
		return "1 argument is"
	}
	return fmt.Sprintf("%d arguments are", arguments)
}

// WantArgs refuses a wrong number of arguments and says which there should be.
func WantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s wants %s; %s given", cmd.Name(), what, given(len(args)))
		}
		return nil
	}
}

// AddPythonFlag adds the flag that names an interpreter. It is the only way to name one: a file may come
// from somebody else, and must not decide which program runs.
func AddPythonFlag(cmd *cobra.Command, python *string, of string) {
	cmd.Flags().StringVar(python, "python", "python3", "Python `interpreter` of "+of)
}
