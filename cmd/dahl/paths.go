package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/rundir/experiment"
)

// writtenPaths are the flags that name outputs of a command, with the endings of their files; none means a directory.
var writtenPaths = map[string][]string{
	"out": nil, "save": flags.SaveEndings(), "outputs": {".npz"}, "export": {".json", ".dot", ".txt", ".rec", ".xml", ".toml"},
	"calibrate.out": {".toml"}, "import.out": {".json", ".toml"}, "report.out": {".html"},
}

// addsTo are the flags of directories to which a command adds files. The directory may be a run that the command reads.
var addsTo = []string{"compare.out", "man.out"}

// kindsOfFiles are the endings of files that the program or its user makes. No output of one kind replaces a file of another.
var kindsOfFiles = []string{".toml", ".onnx", ".npz", ".safetensors", ".json", ".csv", ".html", ".stg", ".dot", ".gv"}

// namesAsArguments are the commands whose arguments are no paths.
var namesAsArguments = []string{"peer", "completion", "experiment show", "help"}

// namedPath is a path as the command line has it.
type namedPath struct {
	text string // "--model m.toml", or an argument
	path string
}

// checkPaths refuses an output that is also an input of the command, or would replace a file in an input directory.
func checkPaths(cmd *cobra.Command, args []string) error {
	read := flags.ReadPaths()
	var inputs []namedPath
	for _, arg := range args {
		if words := cli.Words(cmd); !slices.Contains(namesAsArguments, words) && (words != "experiment run" || !slices.Contains(experiment.Presets(), arg)) {
			inputs = append(inputs, namedPath{arg, arg})
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if pathOf, ok := cli.OfCommand(read, cmd, f.Name); ok {
			for _, value := range valuesOf(f) {
				inputs = append(inputs, namedPath{"--" + f.Name + " " + value, pathOf(value)})
			}
		}
	})
	var err error
	// A resumed training writes into its own directory, and not to the defaults of other flags.
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		endings, ok := cli.OfCommand(writtenPaths, cmd, f.Name)
		if out := f.Value.String(); ok && err == nil && out != "" && !slices.Contains(addsTo, cli.Words(cmd)+"."+f.Name) && (f.Changed || !cmd.Flags().Changed("resume")) {
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
		case endings != nil && !info.IsDir() && cli.LiesIn(out.path, in.path) && !slices.Contains(endings, ext):
			return cli.InputErrorf("%s is a file of %s, which this command reads; name one that ends in %s", out.text, in.text, endings[0])
		}
	}
	if info.Mode().IsRegular() && endings != nil && !slices.Contains(endings, ext) && slices.Contains(kindsOfFiles, ext) {
		return cli.InputErrorf("%s is there, and would no longer be what ends in %s; name one that ends in %s", out.text, ext, endings[0])
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
