package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/nn"
	"dahl/rundir/experiment"
)

// readPaths are the flags whose values name files or directories that a command reads, by the flag's name, or by
// command.flag. The function of a flag finds the path in its value; "": the value names no file.
func readPaths() map[string]func(string) string {
	path := func(value string) string { return value }
	unless := func(isName func(string) bool) func(string) string {
		return func(value string) string {
			if isName(value) {
				return ""
			}
			return value
		}
	}
	isData := func(value string) bool {
		kind, _, _ := strings.Cut(value, ":")
		return slices.Contains(nn.DataNames(), kind)
	}
	return map[string]func(string) string{
		"data": unless(isData), "graph": path, "plan": path, "platform": path, "resume": path,
		"init":     unless(func(value string) bool { return strings.HasPrefix(value, uniformInit) }),
		"lowering": unless(func(value string) bool { return value == bestTiles }),
		"model":    unless(func(value string) bool { return !cli.IsModelFile(value) }),
		"python":   unless(func(value string) bool { return !strings.ContainsRune(value, os.PathSeparator) }), // which is looked for where programs are
		"experiment run.data": func(value string) string {
			_, data, _ := strings.Cut(value, "=")
			return unless(isData)(data)
		},
	}
}

// writtenPaths are the flags whose values name what a command writes, with the endings of files; none: it is a directory.
// Flags of directories that only get files added are not here: a command may add a figure to the run that it reads.
func writtenPaths() map[string][]string {
	return map[string][]string{
		"out": nil, "save": {".npz"}, "export": {".json", ".dot", ".txt", ".toml"},
		"calibrate.out": {".toml"}, "import.out": {".json"}, "report.out": {".html"},
	}
}

// kinds are the endings of files that dahl or its user makes. No output of one kind replaces a file of another.
var kinds = []string{".toml", ".onnx", ".npz", ".json", ".csv", ".html", ".stg", ".dot", ".gv"}

// addsTo are the flags whose values name directories to which a command adds files.
var addsTo = []string{"compare.out", "man.out"}

// namesAsArguments are the commands whose arguments are no paths.
var namesAsArguments = []string{"peer", "completion", "experiment show", "help"}

// ofCommand is a line of a table of flags, where there is one.
func ofCommand[T any](table map[string]T, cmd *cobra.Command, flag string) (line T, ok bool) {
	if line, ok = table[cli.Words(cmd)+"."+flag]; !ok {
		line, ok = table[flag]
	}
	return line, ok
}

// namedPath is a path as the command line has it.
type namedPath struct {
	text string // "--model m.toml", or an argument
	path string
}

// checkPaths refuses an output that is an input of the same command, or that would replace a file of a directory that is one.
func checkPaths(cmd *cobra.Command, args []string) error {
	read, written := readPaths(), writtenPaths()
	var inputs []namedPath
	if !slices.Contains(namesAsArguments, cli.Words(cmd)) {
		for _, arg := range args {
			if !slices.Contains(experiment.Presets(), arg) || cli.Words(cmd) != "experiment run" {
				inputs = append(inputs, namedPath{arg, arg})
			}
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if pathOf, ok := ofCommand(read, cmd, f.Name); ok {
			for _, value := range valuesOf(f) {
				inputs = append(inputs, namedPath{"--" + f.Name + " " + value, pathOf(value)})
			}
		}
	})
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		endings, ok := ofCommand(written, cmd, f.Name)
		if out := f.Value.String(); ok && err == nil && out != "" && !slices.Contains(addsTo, cli.Words(cmd)+"."+f.Name) && !elsewhere(cmd, f) {
			err = checkOutput(namedPath{"--" + f.Name + " " + out, out}, endings, inputs)
		}
	})
	return err
}

// valuesOf are the values of a flag that has one or several.
func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// elsewhere tells that a command does not write to the default of a flag, since other flags say where it does.
func elsewhere(cmd *cobra.Command, f *pflag.Flag) bool {
	return !f.Changed && cmd.Flags().Changed("resume")
}

// checkOutput refuses an output that is one of the inputs, or a file of another kind.
func checkOutput(out namedPath, endings []string, inputs []namedPath) error {
	info, err := os.Stat(out.path)
	if err != nil {
		return nil // there is nothing whose place it could take
	}
	ext := strings.ToLower(filepath.Ext(out.path))
	for _, in := range inputs {
		switch {
		case in.path == "":
		case sameFile(in.path, out.path):
			return cli.InputErrorf("%s is also %s, which this command reads; name another for what it writes", out.text, in.text)
		case endings != nil && !info.IsDir() && liesIn(out.path, in.path) && !slices.Contains(endings, ext):
			return cli.InputErrorf("%s is a file of %s, which this command reads; name one that ends in %s", out.text, in.text, endings[0])
		}
	}
	if info.Mode().IsRegular() && endings != nil && !slices.Contains(endings, ext) && slices.Contains(kinds, ext) {
		return cli.InputErrorf("%s is there, and would no longer be what ends in %s; name one that ends in %s", out.text, ext, endings[0])
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
