package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/execute"
	"dahl/kernels"
	"dahl/kernels/simd"
	"dahl/platform"
	"dahl/train/budget"
)

// finding is something of this machine that dahl uses or lacks.
type finding struct {
	Of   string `json:"of"`
	Has  bool   `json:"has"`
	Text string `json:"text"` // what there is, or why there is none and what to do
}

func newDoctor([]string) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what this machine has and what can be measured on it",
		Long: `doctor lists what dahl finds on this machine: processors with their vector instructions
and caches, memory, GPUs and the libraries for them, meters of energy, and clocks that can
be set. Where something is missing it says why, and which command gives a permission. It
measures nothing and changes nothing.`,
		Example: "  dahl doctor",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := execute.Detect()
			if err != nil {
				return err
			}
			found := examine(p)
			if out.json {
				return cli.PrintJSON(cmd.OutOrStdout(), found)
			}
			return printFindings(cmd.OutOrStdout(), found)
		},
	}
	cmd.Flags().BoolVar(&out.json, "json", false, "print one JSON object instead of text")
	return cmd
}

// findings is the object that --json prints.
type findings struct {
	Machine  string    `json:"machine"`
	Findings []finding `json:"findings"`
}

// examine looks at everything; the platform is this machine as it is detected.
func examine(p *platform.Platform) *findings {
	all := &findings{Machine: p.Name}
	add := func(of, text string, err error) {
		f := finding{of, err == nil, text}
		if err != nil {
			f.Text = cli.OneLine(err)
		}
		all.Findings = append(all.Findings, f)
	}
	cpu := &p.Devices[0]
	add("processor", fmt.Sprintf("%d cores with kernels for %v; caches of %s (second level) and %s (third)",
		cpu.Count, simd.Widest(), cli.ShortBytes(cpu.L2Bytes), cli.ShortBytes(cpu.L3Bytes)), nil)
	add("memory", fmt.Sprintf("%s, of which %s may still be taken", budget.Size(p.Memories[0].CapacityBytes), budget.Size(budget.Available().Bytes)), nil)
	gpus, err := execute.GPUs()
	for i, g := range gpus {
		add("GPU "+fmt.Sprint(i), fmt.Sprintf("%s with %s, compute capability %d.%d", g.Name, budget.Size(g.MemoryBytes), g.Capability/10, g.Capability%10), nil)
	}
	if err != nil {
		add("GPUs", "", err)
	} else {
		for _, name := range []string{kernels.CuBLAS, kernels.CuBLASLt, kernels.CuDNN} {
			add("library "+name, "found; its kernels are measured by calibrate", execute.CheckLibrary(name))
		}
	}
	add("joules of processors", "RAPL counts them; calibrate measures their watts", raplHere(energy.PowercapRoot))
	text, err := gpuMeters()
	add("joules of GPUs", text, err)
	text, err = clocksOf(p)
	add("clocks of processors", text, err)
	add("calibration", calibrationTime(), nil)
	return all
}

// raplHere says why the counters of processors cannot be read; nil: they can.
func raplHere(root string) error {
	meter, err := energy.OpenRAPL(root)
	if err != nil {
		if flags, _ := os.ReadFile("/proc/cpuinfo"); bytes.Contains(flags, []byte(" hypervisor")) {
			err = fmt.Errorf("%w; this is a virtual machine, and only its host counts joules", err)
		}
		return err
	}
	return meter.Close()
}

func gpuMeters() (string, error) {
	meters, err := energy.OpenGPUs()
	if err != nil {
		return "", err
	}
	var texts []string
	for i := range meters {
		m := &meters[i]
		how := "integral of sampled watts"
		if m.Counter != nil {
			how = "counter"
		}
		texts = append(texts, fmt.Sprintf("%s by %s, driver %s, limit %s W", m.GPU.Name, how, m.GPU.Driver, cli.ThreeDigits(m.GPU.PowerLimitWatts)))
	}
	return strings.Join(texts, "; "), energy.CloseGPUs()
}

// clocksOf says between which frequencies --set-clocks may set processors.
func clocksOf(p *platform.Platform) (string, error) {
	here, err := clocksHere()
	if err != nil {
		return "", err
	}
	least, most, err := here.Range(execute.CPUsOf(p, 0)[0])
	return fmt.Sprintf("%s to %s GHz by --set-clocks", cli.ThreeDigits(least/1e9), cli.ThreeDigits(most/1e9)), err
}

// calibrationTime says what calibrate measures by default and about how long.
func calibrationTime() string {
	return fmt.Sprintf("dahl calibrate --out here.toml measures %s at their own batches for about %v each, and the memory; further networks take as long",
		strings.Join(calibratedModels, ", "), calibrationPerModel)
}

// printFindings writes a line for each, what is missing with a mark.
func printFindings(w io.Writer, all *findings) error {
	fmt.Fprintln(w, all.Machine)
	for _, f := range all.Findings {
		mark := "yes"
		if !f.Has {
			mark = "no"
		}
		if _, err := fmt.Fprintf(w, "  %-3s  %-21s %s\n", mark, f.Of, cmp.Or(f.Text, "-")); err != nil {
			return err
		}
	}
	return nil
}
