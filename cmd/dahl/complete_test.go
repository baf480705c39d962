package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/shell"
	"dahl/plan/problem"
	"dahl/plots"
)

// completed are what a shell is offered for a command line without the dahl, whose last word may be
// empty.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	var offers []string
	for line := range strings.Lines(mustRun(t, append([]string{cobra.ShellCompRequestCmd}, words...)...)) {
		if offer, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(offer, ":") {
			offers = append(offers, offer)
		}
	}
	return offers
}

// TestEveryFlagCompletes: a flag that takes a value is in the table, and the table has no others.
func TestEveryFlagCompletes(t *testing.T) {
	unused := shell.Completions()
	for _, cmd := range cli.Commands(newRoot([]string{cobra.ShellCompRequestCmd})) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			delete(unused, f.Name)
			delete(unused, cli.Words(cmd)+"."+f.Name)
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && f.Value.Type() != "bool" {
				t.Errorf("%s: the table of completions has no line for --%s", cmd.CommandPath(), f.Name)
			}
			if value, _ := pflag.UnquoteUsage(f); value == f.Value.Type() && value != "bool" {
				t.Errorf("%s: the text of --%s does not name its value in backquotes", cmd.CommandPath(), f.Name)
			}
		})
	}
	for name := range unused {
		t.Errorf("the table of completions has a line for %s, and no command has the flag", name)
	}
}

// TestCompletedValues: a shell is offered every value of the flags that have a fixed set of them, on
// every command that has the flag.
func TestCompletedValues(t *testing.T) {
	t.Chdir(t.TempDir())
	sets := map[string][]string{
		"policy": flags.PolicyNames(), "dtype": cli.RealTypes(), "optimizer": flags.OptimizerNames(), "loss": flags.LossNames(), "schedule": flags.ScheduleNames(),
		"objective": problem.Objectives(), "precision": {"full", "tf32", "bf16"}, "colour": plots.Colours(), "lowering": {"default"},
		"calibrate.lowering": {"all"}, "platform": {"boxes", "emulated", "laptop", "manycore", "nvlink", "server"}, "model": {"cifar-cnn", "dahl-cnn", "digits-cnn", "lenet5", "mlp"},
		"data": {"digits", "synthetic"}, "variant": {"avx2", "avx512", "go", "ref"},
		"plot.format": {"svg", "png", "pdf"}, "trace.format": {"chrome", "clocks", "csv", "paje"}, "import.format": {"stg", "dot", "placement"},
		"experiment run.data": nil, // case=DATA
	}
	for _, cmd := range cli.Commands(newRoot([]string{cobra.ShellCompRequestCmd})) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			want, ok := sets[cli.Words(cmd)+"."+f.Name]
			if !ok {
				want = sets[f.Name]
			}
			offers := completed(t, append(strings.Fields(cli.Words(cmd)), "--"+f.Name, "")...)
			for _, value := range want {
				if !slices.Contains(offers, value) {
					t.Errorf("%s --%s: %v are offered, without %s", cmd.CommandPath(), f.Name, offers, value)
				}
			}
		})
	}
}

// TestCompletion completes what depends on files and on what was typed before.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", "")
	writeTestFile(t, "notes.txt", "")
	writeTestFile(t, "nets/one.onnx", "")
	writeTestFile(t, "first/manifest.json", "{}")
	writeTestFile(t, "many/second/manifest.json", "{}")
	writeTestFile(t, "grid/experiment.json", "{}")
	writeTestFile(t, "begun/.staging/manifest.json", "{}")
	for _, c := range []struct{ line, want string }{
		{"simulate --platform n", "nvlink nets/ node.toml"},
		{"simulate --model nets/", "nets/one.onnx"},
		{"simulate --platform server --devices ", "cpu cpu0 cpu1 cuda gpu gpu0 gpu1 gpu2 gpu3"},
		{"simulate --platform server --devices gpu0,cpu", "gpu0,cpu gpu0,cpu0 gpu0,cpu1"},
		{"simulate --platform nope --devices ", ""},
		{"plot first p", "power"},
		{"plot first gantt ", "power memory compare front confusion"},
		{"report ", "first many/"},
		{"report many/", "many/second"},
		{"verify first ", ""},
		{"execute --resume ", "begun first many/"},
		{"execute --batch ", ""},
		{"demo ", ""},
		{"experiment ", "list run show verify"},
		{"experiment run g", "granularity grid/"},
		{"experiment show sch", "schedulers"},
		{"experiment verify ", "grid"},
		{"completion ", "bash fish powershell zsh"},
		{"help comp", "compare completion"},
	} {
		offers := completed(t, strings.Split(c.line, " ")...)
		if !slices.Equal(offers, strings.Fields(c.want)) {
			t.Errorf("dahl %s: %v are offered, want %s", c.line, offers, c.want)
		}
	}
}

// TestCompletionPrograms: each shell gets a program, and those that are installed can read theirs.
func TestCompletionPrograms(t *testing.T) {
	readsOnly := map[string]string{"bash": "-n", "zsh": "-n", "fish": "--no-execute"}
	for _, name := range []string{"bash", "zsh", "fish", "powershell"} {
		program := mustRun(t, "completion", name)
		if !strings.Contains(program, cobra.ShellCompRequestCmd) {
			t.Errorf("%s: the program does not ask dahl:\n%s", name, program)
		}
		shell, err := exec.LookPath(name)
		if err != nil || readsOnly[name] == "" {
			t.Logf("there is no %s to read its program", name)
			continue
		}
		check := exec.Command(shell, readsOnly[name])
		check.Stdin = strings.NewReader(program)
		if said, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
