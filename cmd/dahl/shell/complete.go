package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/graphs"
	"dahl/cmd/dahl/runs"
	"dahl/cmd/grid"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/weights"
	"dahl/plan/problem"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/platforms"
	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir"
	"dahl/rundir/experiment"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train/peer"
)

// Completions say what a shell offers as the value of each flag: by the flag's name, or by command.flag where
// commands differ, or where only one command has the flag. Every flag that takes a value has a line.
func Completions() map[string]cobra.CompletionFunc {
	platformFiles, modelFiles := cli.NamesOrFiles(platforms.Names(), ".toml"), cli.NamesOrFiles(cli.ModelNames(), ".toml", ".onnx")
	return map[string]cobra.CompletionFunc{
		"batch": cli.Anything, "budget": cli.Anything, "checkpoint": cli.Values("every=", "never"), "clip-norm": cli.Anything,
		"clock": clocks, "colour": cli.Values(plots.Colours()...), "continue-on-loss": cli.Anything,
		"data": cli.NamesOrFiles(data.Names(), data.Endings()...), "deadline": cli.Anything, "devices": devices, "dump": cli.Values(slices.Concat(nn.Passes(), schedule.Passes())...), "dtype": cli.Values(cli.RealTypes()...), "epochs": cli.Anything,
		"dpi": cli.Anything, "export": cli.NamesOrFiles(nil, ".json", ".dot", ".txt", ".rec", ".xml", ".toml"), "font-size": cli.Anything, "graph": cli.NamesOrFiles(nil, ".json", ".txt", ".stg", ".dot"),
		"height": cli.Anything, "init": cli.NamesOrFiles([]string{flags.UniformInit}, weights.Endings()...), "joules": cli.Anything,
		"label-smoothing": cli.Anything, "limit": cli.Anything, "loss": cli.Values(flags.LossNames()...), "lowering": cli.NamesOrFiles([]string{flags.DefaultTiles}, ".toml"),
		"lr": cli.Anything, "minibatches": cli.Anything, "model": modelFiles, "momentum": cli.Anything, "numbers": cli.Anything, "objective": cli.Values(problem.Objectives()...), "offset": cli.Anything,
		"optimizer": cli.Values(flags.OptimizerNames()...), "out": cli.Directories, "outputs": cli.NamesOrFiles(nil, ".npz"), "plan": cli.NamesOrFiles(nil, ".json"), "platform": platformFiles,
		"policy": policies, "power-cap": cli.Anything, "precision": cli.Values(calls.Precisions()...), "python": cli.AnyFile, "record": cli.Anything, "resize": cli.Anything,
		"resume": begunRuns, "samples": cli.Anything, "save": cli.NamesOrFiles(nil, flags.SaveEndings()...), "schedule": cli.Values(flags.ScheduleNames()...),
		"prompt": cli.Anything, "seed": cli.Anything, "setting": cli.Values(peerSettings()...), "steps": cli.Anything, "temperature": cli.Anything, "tile": cli.Anything, "time": cli.Anything, "tokens": cli.Anything, "top-k": cli.Anything, "title": cli.Anything, "unit": cli.Anything, "variant": cli.Values(kernels.VariantNames()...), "vocabulary": cli.Values(data.VocabularyKinds()...),
		"extents": cli.Anything, "ranks": cli.Anything, "step": cli.Anything, "wait-power": cli.Anything, "what-if": platformFiles, "weight-decay": cli.Anything, "width": cli.Anything, "workers": cli.Anything,

		"calibrate.lowering": cli.NamesOrFiles([]string{flags.AllTiles}, ".toml"), "calibrate.out": cli.NamesOrFiles(nil, ".toml"), "import.out": cli.NamesOrFiles(nil, ".json", ".toml"), "report.out": cli.NamesOrFiles(nil, ".html"),
		"experiment run.data": cli.Anything, "experiment verify.cells": cli.Anything, "experiment verify.count": cli.Anything,
		"import.format": cli.Values(graphs.FormatNames()...), "plot.format": cli.Values(paper.Formats()...), "trace.format": cli.Values(runs.TraceFormatNames()...),
	}
}

// Arguments has the completions of positional arguments, by command.
func Arguments() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"compare": runDirectories, "generate": cli.One(cli.NamesOrFiles(nil, flags.SaveEndings()...)), "evaluate": cli.One(cli.NamesOrFiles(nil, flags.SaveEndings()...)), "report": runDirectories, "trace": cli.One(runDirectories), "verify": cli.One(runDirectories), "rerun": cli.One(runDirectories), "plot": runAndFigures,
		"kernels": cli.One(runDirectories), "import": cli.One(cli.NamesOrFiles(nil, ".stg", ".dot", ".json", ".txt")),
		"peer": cli.One(cli.Values(peerNames()...)), "completion": cli.One(cli.Values(shellNames()...)), "experiment show": cli.One(cli.Values(experiment.Presets()...)),
		"experiment run": cli.One(cli.NamesOrFiles(experiment.Presets(), ".toml")), "experiment verify": cli.One(experiments),
	}
}

// peerNames lists the programs.
func peerNames() []string { return cli.Texts(peer.Programs(), peer.Program.String) }

// peerSettings lists the names of settings of all programs, each once.
func peerSettings() (names []string) {
	for _, p := range peer.Programs() {
		names = append(names, p.SettingNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// policies offers the schedulers with what they do.
func policies(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, name := range cli.BeginWith(begin, flags.PolicyNames()) {
		sentence := "the fastest plan that it finds on sets of the devices" // best is this program's
		if policy, err := policy.ByName(name); err == nil {
			sentence = policy.Doc().Sentence
		} else if strategy, err := strategy.Line(name); err == nil {
			sentence = strategy.Doc().Sentence
		}
		found = append(found, cobra.CompletionWithDesc(name, sentence))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// chosenPlatform is the machine of the flags so far; nil means that it cannot be told.
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
	found = cli.BeginWith(begin, found)
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
	return cli.Offered(cli.BeginWith(begin, found))
}

// runDirectories offers run directories and the directories above them.
func runDirectories(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return cli.DirectoriesOf(begin, rundir.ManifestName)
}

// begunRuns also offers those whose training was interrupted.
func begunRuns(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return cli.DirectoriesOf(begin, rundir.ManifestName, filepath.Join(".*", rundir.ManifestName))
}

// experiments offers directories with the results of one.
func experiments(_ *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return cli.DirectoriesOf(begin, grid.HeadFile)
}

// runAndFigures offers a run, and then the figures that are not yet named.
func runAndFigures(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return runDirectories(cmd, args, begin)
	}
	left := slices.DeleteFunc(runs.FigureNames(), func(n string) bool { return slices.Contains(args[1:], n) })
	return cli.Offered(cli.BeginWith(begin, left))
}
