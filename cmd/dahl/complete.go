package main

import (
	"cmp"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/grid"
	"dahl/kernels"
	"dahl/plan/exact"
	"dahl/platform"
	"dahl/platforms"
	"dahl/plots"
	"dahl/rundir"
	"dahl/rundir/experiment"
	"dahl/schedule"
)

// completions say what a shell offers as the value of each flag: by the flag's name, or by
// command.flag where commands differ, or where a flag is of one alone. Every flag that takes a value has a line.
func completions() map[string]cobra.CompletionFunc {
	platformFiles, modelFiles := namesOrFiles(platforms.Names(), ".toml"), namesOrFiles(cli.ModelNames(), ".toml", ".onnx")
	return map[string]cobra.CompletionFunc{
		"batch": anything, "budget": anything, "checkpoint": values("every=", "never"), "clip-norm": anything,
		"clock": clocks, "colour": values(plots.Colours()...), "continue-on-loss": anything,
		"data": dataNames, "deadline": anything, "devices": devices, "dtype": values(cli.RealTypes()...), "epochs": anything,
		"export": namesOrFiles(nil, ".json", ".dot", ".txt", ".toml"), "graph": namesOrFiles(nil, ".json", ".txt", ".stg", ".dot"),
		"init": namesOrFiles([]string{uniformInit}, ".npz"), "joules": anything,
		"label-smoothing": anything, "limit": anything, "loss": values(lossNames()...), "lowering": namesOrFiles([]string{bestTiles}, ".toml"),
		"lr": anything, "model": modelFiles, "momentum": anything, "objective": values(exact.Objectives()...), "offset": anything,
		"optimizer": values(optimizerNames()...), "out": directories, "plan": namesOrFiles(nil, ".json"), "platform": platformFiles,
		"policy": policies, "power-cap": anything, "precision": values(kernels.Precisions()...), "python": anyFile, "record": anything, "resize": anything,
		"resume": begunRuns, "samples": anything, "save": namesOrFiles(nil, ".npz"), "schedule": values(scheduleNames()...),
		"seed": anything, "setting": values(peerSettings()...), "steps": anything, "tile": anything, "time": anything, "unit": anything, "variant": values(kernels.VariantNames()...),
		"weight-decay": anything, "workers": anything,

		"calibrate.out": namesOrFiles(nil, ".toml"), "import.out": namesOrFiles(nil, ".json"), "report.out": namesOrFiles(nil, ".html"),
		"experiment run.data": anything, "experiment verify.cells": anything, "experiment verify.count": anything,
		"import.format": values(importFormats()...), "plot.format": values(plots.Formats()...), "trace.format": values(traceFormatNames()...),
	}
}

// arguments say what a shell offers as the arguments of each command that has some.
func arguments() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"compare": runs, "report": runs, "trace": one(runs), "verify": one(runs), "rerun": one(runs), "plot": runAndFigures,
		"kernels": one(runs), "import": one(namesOrFiles(nil, ".stg", ".dot", ".json")),
		"peer": one(values(peerNames()...)), "completion": one(values(shellNames()...)), "experiment show": one(values(experiment.Presets()...)),
		"experiment run": one(namesOrFiles(experiment.Presets(), ".toml")), "experiment verify": one(experiments),
	}
}

// addCompletions tells cobra what to offer.
func addCompletions(root *cobra.Command) {
	ofFlag, ofArguments := completions(), arguments()
	for _, cmd := range cli.Commands(root) {
		if cmd.HasSubCommands() {
			continue // cobra offers those
		}
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		if offer, ok := ofArguments[cli.Words(cmd)]; ok {
			cmd.ValidArgsFunction = offer
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			for _, key := range []string{cli.Words(cmd) + "." + f.Name, f.Name} {
				if offer, ok := ofFlag[key]; ok {
					cli.Must(cmd.RegisterFlagCompletionFunc(f.Name, offer))
					return
				}
			}
		})
	}
}

// anything is the completion of a number or a text: none.
var anything cobra.CompletionFunc = cobra.NoFileCompletions

// anyFile offers files of any name.
func anyFile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// directories leaves it to the shell.
var directories cobra.CompletionFunc = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// values offers some names.
func values(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offered(beginWith(begin, list))
	}
}

// one offers nothing after the first argument.
func one(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, begin)
	}
}

// offered is what a shell is told of a list: where one may go on behind an entry, such as a
// directory, it adds no space.
func offered(list []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if slices.ContainsFunc(list, func(s string) bool {
		return strings.HasSuffix(s, "/") || strings.HasSuffix(s, "=") || strings.HasSuffix(s, ":")
	}) {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return list, directive
}

func beginWith(begin string, list []string) (some []string) {
	for _, s := range list {
		if strings.HasPrefix(s, begin) {
			some = append(some, s)
		}
	}
	return some
}

// namesOrFiles offers names, files with some endings, and directories.
func namesOrFiles(known []string, endings ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found := beginWith(begin, known)
		for path, isDir := range entriesAt(begin) {
			switch {
			case isDir:
				found = append(found, path+"/")
			case slices.Contains(endings, strings.ToLower(filepath.Ext(path))):
				found = append(found, path)
			}
		}
		return offered(found)
	}
}

// entriesAt visits what lies in directories and has a path that begins with a text, and says whether it
// is a directory. Hidden entries are among it where the text says so.
func entriesAt(begin string) iter.Seq2[string, bool] {
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

func dataNames(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found := beginWith(begin, []string{"digits", "synthetic"})
	for path, isDir := range entriesAt(begin) {
		if isDir {
			found = append(found, path+"/")
		}
	}
	return offered(found)
}

// policies offers the schedulers with what they do.
func policies(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, name := range beginWith(begin, policyNames()) {
		info, err := schedule.PolicyByName(name)
		if err != nil { // best is this program's
			info.Sentence = "the fastest plan that it finds on sets of the devices"
		}
		found = append(found, cobra.CompletionWithDesc(name, info.Sentence))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// chosenPlatform is the machine of the flags so far; nil: it cannot be told.
func chosenPlatform(cmd *cobra.Command) *platform.Platform {
	file := ""
	if f := cmd.Flags().Lookup("platform"); f != nil {
		file = f.Value.String()
	}
	p, err := cli.Machine(file, "", true)
	if err != nil {
		return nil
	}
	return p
}

// devices offers what may follow in a list of devices of the chosen platform.
func devices(cmd *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	p := chosenPlatform(cmd)
	if p == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := begin[:strings.LastIndexByte(begin, ',')+1]
	var found []string
	for _, name := range p.Selectable() {
		if !slices.Contains(strings.Split(before, ","), name) {
			found = append(found, before+name)
		}
	}
	found = beginWith(begin, found)
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace // a comma may follow
}

// clocks offers the clocks of the chosen platform's devices.
func clocks(cmd *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []string
	if p := chosenPlatform(cmd); p != nil {
		for i := range p.Devices {
			for _, c := range p.Devices[i].Clocks {
				found = append(found, p.Devices[i].Name+"="+c.Name)
			}
		}
	}
	return offered(beginWith(begin, found))
}

// runs offers directories that hold a run, and those that hold such directories.
func runs(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return runsWith(begin, rundir.ManifestName)
}

// begunRuns also offers those whose training was interrupted.
func begunRuns(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return runsWith(begin, rundir.ManifestName, filepath.Join(".*", rundir.ManifestName))
}

// experiments offers directories with the results of one.
func experiments(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return runsWith(begin, grid.HeadFile)
}

// runsWith offers directories with a file of one of the patterns. Where there are none, the shell
// offers all directories.
func runsWith(begin string, patterns ...string) ([]cobra.Completion, cobra.ShellCompDirective) {
	holds := func(path string, patterns ...string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			files, _ := filepath.Glob(filepath.Join(path, pattern))
			return len(files) > 0
		})
	}
	var found []string
	for path, isDir := range entriesAt(begin) {
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
	return offered(found)
}

// runAndFigures offers a run, and then the figures that are not yet named.
func runAndFigures(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return runs(cmd, args, begin)
	}
	left := slices.DeleteFunc(figureNames(), func(n string) bool { return slices.Contains(args[1:], n) })
	return offered(beginWith(begin, left))
}
