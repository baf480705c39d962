package calibrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/stats"
)

const (
	triadRepeats  = 5
	maxTriadBytes = 256 << 20 // of one array, over all cores
	dispatchTasks = 1000
	dispatchSteps = 50
	sleepTasks    = 10
	sleepSteps    = 5
	speedExtent   = 256
	speedTime     = 10 * time.Millisecond
)

// measureMachine replaces the numbers that belong to no kernel: bandwidth, speeds, and the time
// that the executor takes between two tasks.
func (c *calibrator) measureMachine() error {
	d := c.cpu
	c.platform.Memories[d.Memory].BandwidthBytesPerSec = triad(c.cores, d.L3Bytes)
	d.FlopsPerSec = map[string]float64{"float32": denseFlopsPerSec(dag.Float32), "float64": denseFlopsPerSec(dag.Float64)}
	if err := c.measureDispatch(); err != nil {
		return fmt.Errorf("measure the dispatch of a task: %w", err)
	}
	return nil
}

// triad is the bandwidth of a[i] = b[i] + s·c[i] on all cores at once (J. D. McCalpin, Memory
// bandwidth and machine balance in current high performance computers, IEEE TCCA newsletter,
// 1995). It is the best of several passes over arrays that together are several times the
// last-level cache. Three words of eight bytes move per element; fetching a line before it is
// written does not count.
func triad(cores int, l3Bytes int64) float64 {
	elems := int(min(2*max(l3Bytes, 1<<20), maxTriadBytes)/8)/cores + 1
	arrays := make([][3][]float64, cores)
	spans := make([][2]time.Time, cores)
	best := time.Duration(0)
	for repeat := range triadRepeats {
		onCores(cores,
			func(w int) {
				if repeat > 0 {
					return
				}
				for k := range arrays[w] {
					arrays[w][k] = make([]float64, elems)
					for i := range arrays[w][k] {
						arrays[w][k][i] = float64(i + k)
					}
				}
			},
			func(w int) {
				a, b, c := arrays[w][0], arrays[w][1], arrays[w][2]
				spans[w][0] = time.Now()
				for i := range a {
					a[i] = b[i] + 3*c[i]
				}
				spans[w][1] = time.Now()
			})
		first := slices.MinFunc(spans, func(x, y [2]time.Time) int { return x[0].Compare(y[0]) })[0]
		last := slices.MaxFunc(spans, func(x, y [2]time.Time) int { return x[1].Compare(y[1]) })[1]
		if took := last.Sub(first); best == 0 || took < best {
			best = took
		}
	}
	return float64(3*8*elems*cores) / max(best, 1).Seconds()
}

// denseFlopsPerSec is the speed of a matrix product of speedExtent³ on one core in the default
// variant. A kernel that computes much and moves little can reach it here.
func denseFlopsPerSec(t dag.DType) float64 {
	k, _ := kernels.KernelByName("dense")
	spec := squareProduct(t, speedExtent)
	var best time.Duration
	var b *bench
	onCores(1, func(int) { b = newBench(k.Default(), spec, nil, 0, 0) }, func(int) {
		best = slices.Min(b.measure(context.Background(), speedTime, 1))
	})
	flops, _ := k.Work(spec)
	return flops / max(best, 1).Seconds()
}

// squareProduct is a dense layer of n inputs and outputs for a batch of n.
func squareProduct(t dag.DType, n int) *calls.Spec {
	square := calls.OperandSpec{Type: t, Mode: dag.Read, Shape: []int{n, n}}
	s := &calls.Spec{Op: "dense", Type: t, Operands: []calls.OperandSpec{square, square, square}}
	s.Operands[0].Mode = dag.Write
	return s
}

// measureDispatch measures the time that the executor adds to the kernels of a plan. Recorded
// runs show it as gaps between an end and the next start. A list of empty tasks on one worker
// gives the dispatch. A chain of tasks alternates between two workers. Its gaps add the hand-off if the
// tasks are empty. If the tasks are so long that the other worker falls asleep, they add the wake-up.
func (c *calibrator) measureDispatch() error {
	d := c.cpu
	gap, _, err := c.replayGap(1, nil, dispatchTasks, dispatchSteps)
	if err != nil {
		return err
	}
	d.Dispatch = gap
	if c.cores == 1 {
		return nil
	}
	gap, spin, err := c.replayGap(2, nil, dispatchTasks, dispatchSteps)
	if err != nil {
		return err
	}
	d.Handoff = max(1, gap-d.Dispatch)
	if spin == 0 {
		return nil
	}
	long := func(*calls.Call) {
		for begin := time.Now(); time.Since(begin) < 4*spin; {
		}
	}
	gap, _, err = c.replayGap(2, long, sleepTasks, sleepSteps)
	d.WakeAfter, d.Wake = spin, max(1, gap-d.Dispatch)
	return err
}

// replayGap runs a chain of tasks on some cores, and returns the median time from an end to
// the next start, and how long a worker spins before it sleeps.
func (c *calibrator) replayGap(workers int, body func(*calls.Call), tasks, steps int) (gap, spin time.Duration, err error) {
	d := *c.cpu
	d.Count, d.Memory, d.PlacedOnly = workers, 0, false
	p := &platform.Platform{Name: c.platform.Name, Memories: []platform.Memory{c.platform.Memories[c.cpu.Memory]}, Devices: []platform.Device{d}}
	if err := p.Complete(); err != nil {
		return 0, 0, err
	}
	gaps, spin, err := execute.ChainGaps(c.ctx, p, body, tasks, steps)
	return stats.Median(slices.Concat(gaps...)), spin, err
}
