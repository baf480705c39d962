package main

import (
	"slices"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/rundir/experiment"
)

// paths are the flags and arguments of all commands that name files or directories.
func paths() *cli.Paths {
	return &cli.Paths{
		Read: flags.ReadPaths(),
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
