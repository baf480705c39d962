package execute

import (
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/schedule"
)

const (
	triadRepeats   = 5
	maxTriadBytes  = 256 << 20 // of one array of all cores together
	dispatchTasks  = 1000
	dispatchSteps  = 50
	flopsRepeats   = 5
	flopsChainIter = 200_000
)

// measureMachine replaces the numbers that belong to no kernel: bandwidth,
// speeds of plain Go and dispatch.
func (c *calibrator) measureMachine() {
	d := &c.platform.Devices[0]
	c.platform.Memories[d.Memory].BandwidthBytesPerSec = triad(d.Count, d.L3Bytes)
	d.Dispatch = dispatchCost()
	d.FlopsPerSec = map[string]float64{"float32": goFlopsPerSec[float32](), "float64": goFlopsPerSec[float64]()}
}

// triad is the bandwidth of a[i] = b[i] + s·c[i] on all cores at once (J. D.
// McCalpin, Memory bandwidth and machine balance in current high performance
// computers, IEEE TCCA newsletter, 1995): the best of several passes over arrays
// that are together several times the last-level cache. Three words of eight
// bytes move per element; a write that first fetches its line is not counted.
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

// goFlopsPerSec is the speed of scalar multiplications and additions in eight
// independent chains on one core: the roofline of plain Go kernels.
func goFlopsPerSec[T kernels.Float]() float64 {
	best, kept := time.Duration(0), T(0)
	onCores(1, func(int) {}, func(int) {
		for range flopsRepeats {
			var x [8]T
			f, g := T(0.999), T(0.001)
			start := time.Now()
			for range flopsChainIter {
				x[0], x[1], x[2], x[3] = x[0]*f+g, x[1]*f+g, x[2]*f+g, x[3]*f+g
				x[4], x[5], x[6], x[7] = x[4]*f+g, x[5]*f+g, x[6]*f+g, x[7]*f+g
			}
			took := time.Since(start)
			if best == 0 || took < best {
				best = took
			}
			kept += x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]
		}
	})
	if kept < 0 { // uses the result, so that the loop stays
		return 0
	}
	return 16 * flopsChainIter / max(best, 1).Seconds()
}

// dispatchCost is what a task costs beside its kernel: the time per task of a
// static replay of tasks that do nothing, recorded, on one core.
func dispatchCost() time.Duration {
	b := dag.NewBuilder("dispatch")
	order := make([]dag.TaskID, dispatchTasks)
	c := &compiledGraph{tasks: make([]boundTask, dispatchTasks)}
	for i := range order {
		order[i] = b.Task(dag.Task{Name: strconv.Itoa(i)})
		c.tasks[i].run = []func(*kernels.Call){func(*kernels.Call) {}}
	}
	g, err := b.Build()
	if err != nil {
		panic("execute: " + err.Error())
	}
	c.graph = g
	c.replay, err = compileReplay(g, &schedule.Plan{Order: [][]dag.TaskID{order}}, &schedule.Layout{}, 1)
	if err != nil {
		panic("execute: " + err.Error())
	}
	var took time.Duration
	w := &worker{spans: make([]span, 0, dispatchTasks*dispatchSteps)}
	onCores(1, func(int) {}, func(int) {
		j := &job{graph: c, team: newTeam(1, 0), steps: dispatchSteps, record: true, base: time.Now()}
		j.done.Add(1)
		w.do(j)
		took = j.now()
	})
	return took / (dispatchTasks * dispatchSteps)
}
