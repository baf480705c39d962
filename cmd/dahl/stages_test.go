package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
)

// TestStages: a lowering file with stages is planned in its order where nobody names a policy, and an order with numbers makes stages. A line names their devices,
// and another one the closed formula.
func TestStages(t *testing.T) {
	t.Chdir(t.TempDir())
	file := "micro_batches = 4\norder = \"gpipe\"\n[[stage]]\nfrom = \"conv1\"\ndevice = \"gpu\"\n[[stage]]\nfrom = \"fc1\"\ndevice = \"cpu.1\"\n"
	must.Do(t, os.WriteFile("stages.toml", []byte(file), 0o644))
	must.Do(t, os.WriteFile("stash.toml", []byte("stash = true\n"+strings.Replace(file, "gpipe", "1f1b", 1)), 0o644))
	must.Do(t, os.WriteFile("sync.toml", []byte("vertical_sync = true\n"+file), 0o644))
	const simulate = "simulate --model lenet5 --platform emulated --out e "
	for args, want := range map[string][]string{
		"--lowering stages.toml":               {"gpipe", "stages    from conv1 on gpu, from fc1 on cpu.1; 4 micro-batches\n", "for a step, by a formula and not simulated: 5 times ", "; bubble 1/5\n"},
		"--lowering stages.toml --policy 1f1b": {"1f1b", "from fc1 on cpu.1; 4 micro-batches\n"},
		"--lowering stash.toml":                {"1f1b", "; 4 mini-batches, with 2, 1 versions of the weights\n", ": 4 times ", "; bubble 0/4\n", "tasks run up to 1 step behind others\n"},
		"--policy Interleaved:2x2x4":           {"interleaved", "stages    from input on gpu, from ", "; 4 micro-batches\n", "; bubble 1/9\n"},
		"--policy Data-Parallel:2:tree":        {"heft", " of cpu (samples shared in these proportions, sums tree); without", " of the slowest shares, ", " of gradients\n"},
		"--policy owt:2":                       {"heft", " of cpu (samples shared in these proportions, sums ring), from flatten1 on gpu + cpu (outputs shared, sums ring); ", " of messages, "},
		"--policy 1f1b:2x4:stash":              {"1f1b", "; 4 mini-batches, with 2, 1 versions of the weights\n", "; bubble 0/4\n"},
		"--policy tensor-parallel:2+gpipe:1x4": {"gpipe", "from input on gpu + cpu (outputs shared, sums ring); 4 micro-batches\n", " of these messages); bubble 0/4\n"},
	} {
		out := mustRun(t, strings.Fields(simulate+args)...)
		if !strings.Contains(out, "policy "+want[0]+", ") {
			t.Errorf("%s: another policy than %s\n%s", args, want[0], out)
		}
		for _, text := range want[1:] {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in\n%s", args, text, out)
			}
		}
		m := must.Get(record.ReadManifest("e"))(t)
		order := strings.TrimPrefix(want[0], "heft") // of shared stages that are no pipeline nobody names an order
		if strings.Contains(args, "stages.toml") {
			order = "gpipe"
		}
		if m.Options.Policy == "best" || m.Lowering.Order != order {
			t.Errorf("%s: the manifest has policy %s and %+v", args, m.Options.Policy, m.Lowering)
		}
		must.Do(t, os.RemoveAll("e"))
	}
	for args, want := range map[string]string{
		"--policy 1f1b":                            "--policy 1f1b: the graph has no stages; write [[stage]] into a file for --lowering, or numbers behind the name, as in 1f1b:4x8",
		"--policy owt":                             `owt: "emulated" has 1 unit beside processors; say how many devices`,
		"--policy zero1":                           `--policy: strategy "zero1": write zero1:DEVICES`,
		"--policy zero1:2+data-parallel:2":         `--policy: strategy "zero1:2+data-parallel:2": the devices of a stage share it along samples, and along one dimension more`,
		"--policy owt:3":                           `owt:3: 3 devices have equal shares, and would wait for single cores: "emulated" has 1 unit beside processors; take at most 2 devices`,
		"--policy spatial:2+1f1b:2x4":              "all layers of a stage are shared along one dimension",
		"--policy zero:2":                          `--policy "zero:2"`,
		"--policy heft:2":                          "--policy heft:2: heft takes no numbers",
		"--policy 1f1b:2":                          `--policy: strategy "1f1b:2": write 1f1b:DEVICESxMICRO-BATCHES`,
		"--policy 1f1b:4x8":                        `1f1b:4x8: 4 devices are asked for: "emulated" has 3 units; take fewer`,
		"--policy 1f1b:2x4 --lowering stages.toml": "with the lowering of stages.toml: 1f1b:2x4: the lowering has stages of its own",
		"--lowering sync.toml":                     "sync.toml:1: vertical_sync = true: only stashed weights have versions; write stash = true, or leave the line out",
		"--devices cpu --lowering stages.toml":     `lowering: stage 1, from "conv1": device "gpu" is not one of cpu, cpu.0, cpu.1`,
	} {
		r := dahl(t, t.Context(), strings.Fields(simulate+args)...)
		if r.code != cli.ExitBadInput || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("%s: exit code %d, want 2\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if files := must.Get(os.ReadDir("."))(t); len(files) != 3 {
		t.Errorf("files %v", files)
	}
}

// TestResumeStages: a training with the stages of a strategy goes on with those that it has, and ends with the weights of one that was not interrupted.
func TestResumeStages(t *testing.T) {
	t.Chdir(t.TempDir())
	const training = "execute --platform emulated --model lenet5 --data synthetic:1x28x28:64:10 --policy data-parallel:2 --checkpoint every=1steps --out "
	mustRun(t, strings.Fields(training+"whole --epochs 2")...)
	mustRun(t, strings.Fields(training+"two --epochs 1")...)
	must.Contain(t, mustRun(t, strings.Fields("execute --resume two --epochs 2")...), " of cpu (samples shared in these proportions")
	if whole, two := must.Get(os.ReadFile("whole/weights.npz"))(t), must.Get(os.ReadFile("two/weights.npz"))(t); !bytes.Equal(whole, two) {
		t.Error("the weights are others than without the interruption")
	}
}
