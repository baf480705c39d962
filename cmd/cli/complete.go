package cli

import (
	"cmp"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Completing reports whether a shell asks what to offer. Other command lines need no [Complete], whose flags cobra keeps as long as the process lives.
func Completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// Complete tells cobra what a shell is offered: as the value of each flag, by its name or by command.flag where commands
// differ, and as the arguments of each command that has some.
func Complete(root *cobra.Command, ofFlag, ofArguments map[string]cobra.CompletionFunc) {
	for _, cmd := range Commands(root) {
		if cmd.HasSubCommands() {
			continue // cobra offers those
		}
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		if offer, ok := ofArguments[Words(cmd)]; ok {
			cmd.ValidArgsFunction = offer
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if offer, ok := OfCommand(ofFlag, cmd, f.Name); ok {
				Must(cmd.RegisterFlagCompletionFunc(f.Name, offer))
			}
		})
	}
}

// Anything is the completion of a number or a text: none.
var Anything cobra.CompletionFunc = cobra.NoFileCompletions

// AnyFile offers files of any name.
func AnyFile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// Directories leaves it to the shell.
var Directories cobra.CompletionFunc = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// Values offers some names.
func Values(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return Offered(BeginWith(begin, list))
	}
}

// One offers nothing after the first argument.
func One(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, begin)
	}
}

// Offered turns a list into completions for a shell. Where an entry such as a directory may be
// continued, the shell adds no space.
func Offered(list []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if slices.ContainsFunc(list, func(s string) bool {
		return strings.HasSuffix(s, "/") || strings.HasSuffix(s, "=") || strings.HasSuffix(s, ":")
	}) {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return list, directive
}

// BeginWith returns the texts of a list that have a prefix, in their order.
func BeginWith(begin string, list []string) (some []string) {
	for _, s := range list {
		if strings.HasPrefix(s, begin) {
			some = append(some, s)
		}
	}
	return some
}

// NamesOrFiles offers names, files with some endings, and directories.
func NamesOrFiles(known []string, endings ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found := BeginWith(begin, known)
		for path, isDir := range EntriesAt(begin) {
			switch {
			case isDir:
				found = append(found, path+"/")
			case slices.Contains(endings, strings.ToLower(filepath.Ext(path))):
				found = append(found, path)
			}
		}
		return Offered(found)
	}
}

// EntriesAt visits the files and directories whose paths begin with a text. The second value reports a
// directory. Hidden entries are visited only where the text names one.
func EntriesAt(begin string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		dir, name := filepath.Split(begin)
		entries, _ := os.ReadDir(cmp.Or(dir, ".")) // what cannot be read offers nothing
		for _, e := range entries {
			path := dir + e.Name()
			if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if info, err := os.Stat(path); err == nil && !yield(path, info.IsDir()) {
				return
			}
		}
	}
}

// DirectoriesOf offers directories with a file of one of the patterns. Where there are none, the shell
// offers all directories.
func DirectoriesOf(begin string, patterns ...string) ([]cobra.Completion, cobra.ShellCompDirective) {
	holds := func(path string, patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			files, _ := filepath.Glob(filepath.Join(path, pattern))
			return len(files) > 0
		})
	}
	var found []string
	for path, isDir := range EntriesAt(begin) {
		switch {
		case !isDir:
		case holds(path, patterns...):
			found = append(found, path)
		case holds(path, filepath.Join("[^.]*", patterns[0])):
			found = append(found, path+"/")
		}
	}
	if found == nil {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return Offered(found)
}
