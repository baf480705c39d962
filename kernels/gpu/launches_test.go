package gpu_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/kernels/offload"
)

// entry is what PTX says of a kernel.
type entry struct {
	paramBytes, threads int // of its one parameter, and at most of a block
}

// TestLaunchesMatchPTX checks every launch of every CUDA variant against the PTX that is
// carried: the kernel is there, for the variant's least capability too, its parameter has
// the size of the struct that Go mirrors it by, and grid, block and shared memory are within
// what the kernel allows and every device has.
func TestLaunchesMatchPTX(t *testing.T) {
	entries := readPTX(t)
	kerneltest.Each(t, 24, func(t *testing.T, c *kerneltest.Case) {
		bases := make([]uint64, len(c.Buffers))
		for i := range bases {
			bases[i] = uint64(i+1) << 32
		}
		for i := range c.Kernel.Variants {
			v := &c.Kernel.Variants[i]
			if v.Code != calls.CUDACode || !v.For(c.Spec.Type) || v.Fits(&c.Spec) != nil {
				continue
			}
			launches := v.Launches(c.DeviceCall(bases, 1<<48))
			if v.Before != nil {
				launches = append(launches, v.Before(c.DeviceCall(bases, 1<<48))...)
			}
			if len(launches) == 0 && v.LibraryCall == nil {
				t.Fatalf("%s %s: no launches", v.Name, c.Spec.Key())
			}
			for _, l := range launches {
				for _, sm := range []int{75, 80} {
					file := fmt.Sprintf("%s.sm_%d", l.Module, sm)
					if _, there := entries[file]; !there && sm == 80 { // make ptx leaves out what is the same
						file = l.Module + ".sm_75"
					}
					if sm >= v.Capability {
						checkLaunch(t, l, v.Capability, file, entries[file])
					}
				}
			}
		}
	})
}

func checkLaunch(t *testing.T, l offload.Launch, capability int, file string, entries map[string]entry) {
	t.Helper()
	e, ok := entries[l.Symbol]
	threads, shared := l.Block[0]*l.Block[1]*l.Block[2], uint32(48<<10)
	if capability >= 80 {
		shared = 99 << 10 // that a block may ask for on all of these
	}
	switch {
	case !ok:
		t.Fatalf("%s: no kernel %s", file, l.Symbol)
	case len(l.Params) != e.paramBytes:
		t.Errorf("%s: %s has a parameter of %d bytes, the launch one of %d", file, l.Symbol, e.paramBytes, len(l.Params))
	case threads == 0 || threads%32 != 0 || threads > uint32(e.threads):
		t.Errorf("%s: %s is launched with blocks of %v threads, at most %d are allowed", file, l.Symbol, l.Block, e.threads)
	case l.Grid[0] == 0 || l.Grid[0] > 1<<31-1 || l.Grid[1] == 0 || l.Grid[1] > 65535 || l.Grid[2] == 0 || l.Grid[2] > 65535:
		t.Errorf("%s: %s is launched with a grid of %v", file, l.Symbol, l.Grid)
	case l.SharedBytes > shared:
		t.Errorf("%s: %s is launched with %d bytes of shared memory", file, l.Symbol, l.SharedBytes)
	}
}

var (
	entryLine = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\(\s*\.param \.align \d+ \.b8 \w+\[(\d+)\]\s*\)\s*\.maxntid (\d+), (\d+), (\d+)`)
	anyEntry  = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\(`)
)

// readPTX reads the kernels of every file, by the file's name without ".ptx.gz".
func readPTX(t *testing.T) map[string]map[string]entry {
	t.Helper()
	files, err := filepath.Glob("../cuda/*.ptx.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no PTX: %v", err)
	}
	all := map[string]map[string]entry{}
	for _, file := range files {
		text, err := decompress(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		entries := map[string]entry{}
		for _, m := range entryLine.FindAllSubmatch(text, -1) {
			n := func(i int) int {
				v, _ := strconv.Atoi(string(m[i])) // digits, says the expression
				return v
			}
			entries[string(m[1])] = entry{n(2), n(3) * n(4) * n(5)}
		}
		if want := len(anyEntry.FindAll(text, -1)); len(entries) != want || want == 0 {
			t.Errorf("%s: %d of %d kernels have one struct as parameter and a bound of threads", file, len(entries), want)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".ptx.gz")] = entries
	}
	return all
}

func decompress(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
