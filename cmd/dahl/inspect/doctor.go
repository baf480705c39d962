package inspect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
	"dahl/naming"
	"dahl/platform"
	"dahl/train"
	"dahl/train/budget"
	"dahl/train/setclock"
)

// Finding is something of this machine that dahl uses or lacks.
type Finding struct {
	Of      string `json:"of"`
	Has     bool   `json:"has"`
	Text    string `json:"text"`              // the description, or the reason why it is missing, with a remedy
	Command string `json:"command,omitempty"` // that gives it
}

// NewDoctor is the command doctor. The clocks of its machine are set by a system. The text about calibration names its
// duration.
func NewDoctor(clocks func() (*setclock.System, error), calibration string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what this machine has and what can be measured on it",
		Long: `doctor lists what dahl finds on this machine: processors with their kernels and caches,
memory, GPUs and the libraries for them, meters of energy and temperature, and clocks that can
be set, and says what a calibration takes. Where something is missing it says why: a permission,
with the command that gives it, a virtual machine, or hardware that does not count. It looks at
each counter of energy until that has moved, and for a second at most, and changes nothing.`,
		Example: "  dahl doctor\n  dahl doctor --json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := hardware.Detect()
			if err != nil {
				return err
			}
			found := thisHost(clocks).examine(p, calibration)
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), found)
			}
			return printFindings(cmd.OutOrStdout(), found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of text")
	return cmd
}

// Findings is the object that --json prints.
type Findings struct {
	Machine  string    `json:"machine"`
	Findings []Finding `json:"findings"`
}

func (all *Findings) add(of, text string, err error) {
	f := Finding{Of: of, Has: err == nil, Text: text}
	if err != nil {
		f.Text = cli.OneLine(err)
	}
	if denied, ok := errors.AsType[*meter.DeniedError](err); ok {
		f.Command = denied.Allow
	}
	all.Findings = append(all.Findings, f)
}

// examined is a machine as doctor sees it. Tests have another one.
type examined struct {
	virtual   bool
	processor func() (meter.Meter, error) // opens the counters of packages
	celsius   func() (float64, error)     // of packages; nil means no sensor
	gpus      func() ([]driver.GPU, error)
	library   func(name string) (file string, err error)
	meters    []meter.Library // of GPUs
	clocks    func() (*setclock.System, error)
}

// thisHost is the machine on which this program runs.
func thisHost(clocks func() (*setclock.System, error)) *examined {
	flags, _ := os.ReadFile("/proc/cpuinfo") // where there is none, nothing says so
	return &examined{
		virtual:   bytes.Contains(flags, []byte(" hypervisor")),
		processor: func() (meter.Meter, error) { return meter.OpenRAPL(meter.PowercapRoot) },
		celsius:   meter.PackageSensor(meter.ThermalRoot),
		gpus:      hardware.GPUs, library: hardware.LibraryFile, meters: train.MeterLibraries(), clocks: clocks,
	}
}

// examine looks at everything; the platform is the machine as it is detected.
func (h *examined) examine(p *platform.Platform, calibration string) *Findings {
	all, cpu := &Findings{Machine: p.Name}, &p.Devices[0]
	all.add("processor", fmt.Sprintf("%s; caches of %s (second level) and %s (third)", naming.Count(cpu.Count, "core"), cli.ShortBytes(cpu.L2Bytes), cli.ShortBytes(cpu.L3Bytes)), nil)
	all.add("kernels", kernelsHere(), nil)
	all.add("memory", fmt.Sprintf("%s, of which %s may still be taken", cli.ShortBytes(p.Memories[0].CapacityBytes), cli.ShortBytes(budget.Available().Bytes)), nil)
	h.examineGPUs(all)
	text, err := h.processorMeter()
	all.add("joules of processors", text, err)
	text, err = h.temperature()
	all.add("temperature", text, err)
	h.examineGPUMeters(all)
	text, err = h.clocksOf(p)
	all.add("clocks of processors", text, err)
	all.add("calibration", calibration, nil)
	return all
}

// kernelsHere lists the kinds of vector instructions whose kernels run here.
func kernelsHere() string {
	var runs, lacks []string
	for _, level := range simd.Levels() {
		if level.Supported() {
			runs = append(runs, level.String())
		} else {
			lacks = append(lacks, level.String())
		}
	}
	text := strings.Join(runs, ", ")
	if lacks != nil {
		text += "; the processor cannot run those for " + strings.Join(lacks, ", ")
	}
	return text
}

// examineGPUs lists GPUs and the libraries that the program would load for them.
func (h *examined) examineGPUs(all *Findings) {
	gpus, err := h.gpus()
	for i, g := range gpus {
		all.add("GPU "+fmt.Sprint(i), fmt.Sprintf("%s with %s, compute capability %d.%d", g.Name, cli.ShortBytes(g.MemoryBytes), g.Capability/10, g.Capability%10), nil)
	}
	if err != nil {
		all.add("GPUs", "", err)
	}
	for _, name := range []string{offload.CuBLAS, offload.CuBLASLt, offload.CuDNN} {
		file, err := h.library(name)
		all.add("library "+name, file+"; calibrate measures its kernels", err)
	}
}

// processorMeter says how joules of processors are counted, or why they are not.
func (h *examined) processorMeter() (string, error) {
	rapl, err := h.processor()
	switch {
	case errors.Is(err, meter.ErrNoCounter) && h.virtual:
		return "", errors.New("this is a virtual machine, and only its host counts joules; they are modelled by the platform's watts")
	case errors.Is(err, meter.ErrNoCounter):
		return "", fmt.Errorf("%w; load it with: sudo modprobe intel_rapl_msr", err)
	case err != nil:
		return "", err
	}
	text, err := Believed(meter.Metered{Of: energy.ProcessorsMeter, Meter: rapl})
	if err != nil {
		return "", fmt.Errorf("%w; they are modelled by the platform's watts", err)
	}
	return "RAPL counts them" + text + "; calibrate measures their watts", rapl.Close()
}

// Believed looks at a meter. It names counters that show the same. An error names counters that
// cannot be believed.
func Believed(m meter.Metered) (string, error) {
	states := meter.Look([]meter.Metered{m})
	var merged []string
	for i := range states {
		if s := &states[i]; s.Status == meter.Merged {
			merged = append(merged, s.String())
		}
	}
	if err := meter.Doubt(states); err != nil || merged == nil {
		return "", err
	}
	return " (" + strings.Join(merged, "; ") + ")", nil
}

// temperature reads the sensor of processors.
func (h *examined) temperature() (string, error) {
	if h.celsius == nil {
		return "", errors.New("the system shows no sensor of the processors' packages")
	}
	celsius, err := h.celsius()
	return fmt.Sprintf("%.0f degrees Celsius now", celsius), err
}

// examineGPUMeters says of every GPU by what its joules are counted, or why they are not.
func (h *examined) examineGPUMeters(all *Findings) {
	for _, l := range h.meters {
		meters, err := l.Open()
		if err != nil {
			all.add("joules of GPUs", "", err)
			continue
		}
		examineMeters(meters, all)
		// What is closed is not used any more.
		_ = l.Close()
	}
}

func examineMeters(meters []meter.GPUMeters, all *Findings) {
	metered := make([]meter.Metered, len(meters))
	for i := range meters {
		metered[i] = meters[i].Metered(fmt.Sprint("GPU ", i))
	}
	states := meter.Look(metered)
	for i := range meters {
		of := metered[i].Of
		text, err := gpuMeter(&meters[i].GPU, slices.DeleteFunc(slices.Clone(states), func(s meter.MeterState) bool { return s.Of != of }))
		all.add("joules of "+of, text, err)
	}
}

// gpuMeter says by which of its meters the joules of a GPU are counted, or why by none.
func gpuMeter(g *meter.GPU, states []meter.MeterState) (string, error) {
	doubt := meter.Doubt(states)
	i := slices.IndexFunc(states, func(s meter.MeterState) bool { return s.Status == meter.Counts })
	if i < 0 {
		return "", cmp.Or(doubt, errors.New(states[0].String()))
	}
	text := fmt.Sprintf("%s by %s, driver %s, limit %s W", g.Name, states[i].Meter, g.Driver, cli.ThreeDigits(g.PowerLimitWatts))
	if doubt != nil {
		text += "; " + cli.OneLine(doubt)
	}
	return text, nil
}

// clocksOf says between which frequencies --set-clocks may set processors.
func (h *examined) clocksOf(p *platform.Platform) (string, error) {
	here, err := h.clocks()
	if err != nil {
		return "", err
	}
	least, most, err := here.Range(hardware.CPUsOf(p, 0)[0])
	return fmt.Sprintf("%s to %s GHz by --set-clocks", cli.ThreeDigits(least/1e9), cli.ThreeDigits(most/1e9)), err
}

// printFindings writes a line for each, what is missing with a mark.
func printFindings(w io.Writer, all *Findings) error {
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
