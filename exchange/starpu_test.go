package exchange

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
)

// starpuConfig has five cores, of which two drive GPUs, and two NUMA nodes.
const starpuConfig = "# Current configuration\n5 # Number of CPUs\n2 # Number of NUMA nodes\n2 # Number of CUDA devices\n1 # Number of OpenCL devices\n"

// starpuBandwidth is in MB/s, and its latencies in us, of NUMA nodes 0 and 1 and then the GPUs.
const (
	starpuBandwidth = "# to 0\t\tto 1\t\tto 2\t\tto 3\n0.0\t1.0\t6000.0\t5000.0\tnan\n1.0\t0.0\t2.0\t3.0\tnan\n7000.0\t2.0\t0.0\t3000.0\tnan\n4000.0\t3.0\tnan\t0.0\tnan\nnan\tnan\tnan\tnan\tnan\n"
	starpuLatency   = "# to 0\t\tto 1\n0 9 10 11\n9 0 9 9\n12.5 9 0 13\n14 9 nan 0\n"
)

// starpuCombination is the part of a performance model on one device of a type and a number.
func starpuCombination(kind, id, cores int, entries ...string) string {
	return fmt.Sprintf(`####################
# COMB_0
# number of types devices
1
####################
# DEV_0
# device type (CPU - 0, CUDA - 1, OPENCL - 2, MIC - 3)
%d
####################
# DEV_0
# device id
%d
####################
# DEV_0
# number of cores
%d
##########
# number of implementations
1
#####
# Model for it
# number of entries
%d
# sumlnx	sumlnx2		sumlny		sumlnxlny	alpha		beta		n	minx		maxx
0.000000e+00   	0.000000e+00   	0.000000e+00   	0.000000e+00   	nan            	nan            	0	0              	0
# a		b		c
nan            	nan            	nan
# not multiple-regression-base
0
# hash		size		flops		mean (us)	dev (us)	sum		sum2		n
%s
`, kind, id, cores, len(entries), strings.Join(entries, "\n"))
}

func starpuModel(combinations ...string) string {
	return fmt.Sprintf("##################\n# Performance Model Version\n45\n\n####################\n# COMBs\n# number of combinations\n%d\n%s", len(combinations), strings.Join(combinations, ""))
}

// starpuGemm has a core, the second GPU, two cores at once and an OpenCL device.
var starpuGemm = starpuModel(
	starpuCombination(0, 0, 1, "617e5fe6	3686400        	2.953730e+08   	1.884969e+04   	7.370619e+02   	2.111165e+06   	3.985565e+10   	112", "aa	1	2	nan	0	0	0	0"),
	starpuCombination(1, 1, 1, "617e5fe6	3686400        	2.953730e+08   	5.557011e+03   	6.001156e+01   	1.611533e+05   	8.956353e+08   	29"),
	starpuCombination(0, 0, 2, "617e5fe6	3686400        	2.953730e+08   	9e3   	0   	1   	1   	1"),
	starpuCombination(2, 0, 1, "617e5fe6	3686400        	2.953730e+08   	9e3   	0   	1   	1   	1"))

// TestStarpuMachine reads a directory as StarPU writes it. The times are those of StarPU's published model of POTRF on "mirage".
func TestStarpuMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.MkdirAll("s/bus", 0o777))
	must.Do(t, os.MkdirAll("s/codelets/45", 0o777))
	for name, text := range map[string]string{"bus/m.config": starpuConfig, "bus/m.bandwidth": starpuBandwidth, "bus/m.latency": starpuLatency, "codelets/45/potrf.m": starpuGemm, "codelets/45/potrf.other": "nothing"} {
		must.Do(t, os.WriteFile(filepath.Join("s", name), []byte(text), 0o666))
	}
	in := must.Get(must.Get(FormatOf("s/bus/m.config", []byte(starpuConfig)))(t).Read([]byte(starpuConfig), "s/bus/m.config", Options{}))(t)
	p := in.Platform
	if in.Graph != nil || p.Name != "m" || len(p.Devices) != 3 || p.Devices[0].Count != 3 || p.Devices[2].Name != "cuda1" {
		t.Errorf("a machine %q of %+v", p.Name, p.Devices)
	}
	var links []string
	for _, r := range p.Routes {
		l := p.Links[r.Links[0]]
		links = append(links, fmt.Sprintf("%s %g %v", l.Name, l.BandwidthBytesPerSec, l.Latency))
	}
	// What the table says of the second NUMA node is left out, and a nan is no way.
	want := "ram-cuda0.mem 6e+09 10µs, ram-cuda1.mem 5e+09 11µs, cuda0.mem-ram 7e+09 12.5µs, cuda0.mem-cuda1.mem 3e+09 13µs, cuda1.mem-ram 4e+09 14µs"
	if got := strings.Join(links, ", "); got != want || p.Links[p.Routes[0].Links[1]].BandwidthBytesPerSec != 7e9 {
		t.Errorf("links %s, want %s, and the fastest for the host", got, want)
	}
	for device, want := range map[string]time.Duration{"cpu": 18849690, "cuda1": 5557011} {
		at, _ := p.DeviceByName(device)
		if e, ok := p.Estimate(platform.Query{Op: "potrf", Type: "float32", Device: at, Shape: "617e5fe6"}); !ok || e.Duration != want {
			t.Errorf("potrf takes %v on %s, want %v", e.Duration, device, want)
		}
	}
	if got := leftOf(in); got != "1 OpenCL devices, 1 NUMA nodes beyond the first, 1 entries without a measurement, 2 models of other devices or of several at once" {
		t.Errorf("left out %s", got)
	}
}

// TestStarpuIrregular: a file beside that may never end is refused.
func TestStarpuIrregular(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, errors.Join(os.MkdirAll("s/bus", 0o777), os.MkdirAll("s/codelets/45", 0o777)))
	of := must.Get(FormatByName("starpu-machine"))(t)
	for _, path := range []string{"s/bus/m.bandwidth", "s/codelets/45/potrf.m"} {
		must.Do(t, os.Symlink(os.DevNull, path))
		_, err := of.Read([]byte(starpuConfig), "s/bus/m.config", Options{})
		if err == nil || !strings.Contains(err.Error(), filepath.Base(path)+" is no regular file") {
			t.Errorf("%s: %v", path, err)
		}
		must.Do(t, os.Remove(path))
	}
}

// TestStarpuOtherOrder: some of StarPU's published models have the coefficients of a power law behind the number of those of a regression.
func TestStarpuOtherOrder(t *testing.T) {
	other := strings.ReplaceAll(starpuGemm, "nan            	nan            	nan\n# not multiple-regression-base\n0\n", "# not multiple-regression-base\n0\nnan            	nan            	nan\n")
	in := must.Get(must.Get(FormatOf("potrf.m", []byte(other)))(t).Read([]byte(other), "potrf.m", Options{}))(t)
	if other == starpuGemm || len(in.Platform.Models) != 2 {
		t.Errorf("%d models, want 2", len(in.Platform.Models))
	}
}

// TestStarpuModel: a performance model by itself is a machine of its devices without links.
func TestStarpuModel(t *testing.T) {
	in := must.Get(must.Get(FormatOf("dir/potrf.m", []byte(starpuGemm)))(t).Read([]byte(starpuGemm), "dir/potrf.m", Options{}))(t)
	if p := in.Platform; p.Name != "m" || len(p.Devices) != 2 || len(p.Models) != 2 || p.Models[1].Device != "cuda1" || !p.Devices[1].Unreachable {
		t.Errorf("a machine %+v", p)
	}
}

// starpuTasks are a factorisation of one tile and an update by it, which ran on a core and on a GPU, one more update on a core, and a record
// that is no task. The tasks do not stand in the order in which they were submitted.
const starpuTasks = `Control: WontUse
JobId: 9
Handles: a1

Name: gemm
Model: gemm_model
JobId: 3
SubmitOrder: 2
DependsOn: 2
MemoryNode: 1
StartTime: 30.5
EndTime: 32.75
Footprint: beef
Parameters: 4 4 4
Handles: a1 b2 5c
Modes: R RW SCRATCH
Sizes: 40 50 60

Name: potrf
Model: potrf_model
JobId: 2
SubmitOrder: 1
DependsOn:
WorkerId: 1
MemoryNode: 0
StartTime: 10
EndTime: 30
Footprint: cafe
GFlop: 0.5
Priority: 7
Handles: a1
Modes: RW
Sizes: 40

Name: gemm
Model: gemm_model
JobId: 4
SubmitOrder: 3
DependsOn: 2 8
MemoryNode: 0
StartTime: 33
EndTime: 73
Footprint: beef
Handles: a1 d4
Modes: R W
Sizes: 40 70
`

// leftOf is what an import left out.
func leftOf(in *Imported) string {
	var left []string
	for _, l := range in.Left {
		left = append(left, fmt.Sprintf("%d %s", l.Count, l.What))
	}
	return strings.Join(left, ", ")
}

func FuzzStarpuModel(f *testing.F) {
	f.Add([]byte(starpuGemm))
	fuzz(f, "starpu-model")
}
func FuzzStarpuTasks(f *testing.F) { fuzz(f, "starpu-tasks") }
