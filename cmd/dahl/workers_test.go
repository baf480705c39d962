package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
)

// contrary is a machine of three cores on which every call of the small network is fastest by
// the reference kernels while one core works, and by the default ones while three do.
func contrary(t *testing.T) string {
	t.Helper()
	machine := "name = \"contrary\"\n[[memory]]\nname = \"ram\"\nbandwidth = \"10 GB/s\"\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\ncount = 3\nmemory = \"ram\"\nspeed = { float32 = \"20 GF/s\" }\n"
	writeTestFile(t, "bare.toml", machine)
	w := must.Get(trainingWorkload(t.Context(), &flags.Options{Platform: "bare.toml", Model: "small.toml", Data: "digits", Limit: 100, Batch: 32, Policy: "heft", DType: "float32", Epochs: 1}))(t)
	var b strings.Builder
	b.WriteString(machine)
	known := map[string]bool{}
	for _, g := range w.Program.Graphs {
		for i := range g.Tasks {
			writeContrary(&b, &g.Tasks[i], known)
		}
	}
	return b.String()
}

// writeContrary writes the models of a call that is not known yet and has two kernels here.
func writeContrary(b *strings.Builder, task *dag.Task, known map[string]bool) {
	k, err := kernels.KernelByName(task.Op)
	if err != nil || k.Host {
		return
	}
	call, standard := task.Op+task.Type.String()+task.Shape, k.DefaultFor(calls.GoCode).Name
	if known[call] || standard == "ref" {
		return
	}
	known[call] = true
	for _, m := range []struct {
		variant        string
		active, median int
	}{{"ref", 1, 10}, {"ref", 3, 20}, {standard, 1, 20}, {standard, 3, 10}} {
		fmt.Fprintf(b, "[[model]]\nop = %q\nvariant = %q\ntype = %q\ndevice = \"cpu\"\nshape = %q\nactive = %d\nmedian = \"%d us\"\n",
			task.Op, m.variant, task.Type, task.Shape, m.active, m.median)
	}
}

// TestOneSeedOneHash: variants, and with them the weights to the last bit, are the same for any
// number of cores, and for any policy that is named, also where the models for fewer cores would choose others.
// A run is repeated from its own copy of the platform.
func TestOneSeedOneHash(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	machine := contrary(t)
	writeTestFile(t, "contrary.toml", machine)
	run := func(how string) *record.Manifest {
		t.Helper()
		mustRun(t, strings.Fields("execute --model small.toml --data digits --limit 100 --batch 32 --epochs 2 --out run --platform "+how)...)
		return must.Get(record.ReadManifest("run"))(t)
	}
	whole := run("contrary.toml")
	same := func(want *record.Manifest, how ...string) {
		t.Helper()
		for _, how := range how {
			m := run("contrary.toml " + how)
			if m.WeightsHash != want.WeightsHash || !slices.Equal(m.Variants, want.Variants) {
				t.Errorf("%s: weights %.12s, want %.12s; variants\n%s\nwant\n%s", how, m.WeightsHash, want.WeightsHash, strings.Join(m.Variants, "\n"), strings.Join(want.Variants, "\n"))
			}
		}
	}
	same(run("contrary.toml --lowering default"), "--workers 2 --policy eager", "--workers 3 --policy dmda", "--workers 1 --policy dmdar")
	same(whole, "--workers 3", "--workers 2", "--workers 4", "--devices cpu:2", "--workers 1")
	mustRun(t, "rerun", "run")
	mustRun(t, "verify", "run")

	// The same file of a machine with one core chooses otherwise.
	writeTestFile(t, "one.toml", strings.Replace(machine, "count = 3", "count = 1", 1))
	if one := run("one.toml"); strings.Contains(machine, "[[model]]") && slices.Equal(one.Variants, whole.Variants) {
		t.Errorf("one core takes the same kernels, so that nothing was tried:\n%s", strings.Join(one.Variants, "\n"))
	}
}
