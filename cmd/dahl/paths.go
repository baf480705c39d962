package main

import (
	"os"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
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
		"init":     unless(func(value string) bool { return strings.HasPrefix(value, flags.UniformInit) }),
		"lowering": unless(func(value string) bool { return value == flags.BestTiles }),
		"model":    unless(func(value string) bool { return !cli.IsModelFile(value) }),
		"python":   unless(func(value string) bool { return !strings.ContainsRune(value, os.PathSeparator) }), // which is looked for where programs are
		"experiment run.data": func(value string) string {
			_, data, _ := strings.Cut(value, "=")
			return unless(isData)(data)
		},
	}
}

// paths are the flags and arguments of all commands that name files or directories.
func paths() *cli.Paths {
	return &cli.Paths{
		Read: readPaths(),
		Written: map[string][]string{
			"out": nil, "save": {".npz"}, "export": {".json", ".dot", ".txt", ".toml"},
			"calibrate.out": {".toml"}, "import.out": {".json"}, "report.out": {".html"},
		},
		AddsTo:    []string{"compare.out", "man.out"},
		Elsewhere: "resume",
		Kinds:     []string{".toml", ".onnx", ".npz", ".json", ".csv", ".html", ".stg", ".dot", ".gv"},
		IsName: func(command, arg string) bool {
			return slices.Contains(namesAsArguments, command) || command == "experiment run" && slices.Contains(experiment.Presets(), arg)
		},
	}
}

// namesAsArguments are the commands whose arguments are no paths.
var namesAsArguments = []string{"peer", "completion", "experiment show", "help"}
