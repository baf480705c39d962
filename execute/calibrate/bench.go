package calibrate

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/stats"
)

// onCores runs body(0) … body(n-1) at once, each on a pinned thread, after all have run setup.
func onCores(n int, setup, body func(worker int)) {
	cpus := host.CPUs()
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			runtime.LockOSThread() // ends with the goroutine
			// A thread that cannot be pinned measures a little less steadily.
			_ = host.Pin(cpus[i%len(cpus)])
			setup(i)
			ready.Done()
			<-start
			body(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// sample is the times of one repeated call.
type sample struct {
	median, p95 time.Duration
	mean        time.Duration // of the times with the longest hundredth cut to the 99th percentile
	count       int
	spread      float64 // |first half's median / second half's - 1|

	distribution platform.Distribution // of the times that the mean counts
}

// summarise finds the quantiles of repeated times, in the order measured.
func summarise(times []time.Duration) sample {
	if len(times) == 0 {
		return sample{}
	}
	half := len(times) / 2
	first, second := stats.Median(times[:half]), stats.Median(times[half:])
	s := sample{count: len(times)}
	if first > 0 && second > 0 {
		s.spread = math.Abs(float64(first)/float64(second) - 1)
	}
	sorted := slices.Sorted(slices.Values(times))
	s.median = stats.Median(sorted)
	s.p95 = stats.Quantile(sorted, 0.95)
	p99 := stats.Quantile(sorted, 0.99)
	var sum time.Duration
	for i, t := range sorted {
		sorted[i] = min(t, p99)
		sum += sorted[i]
	}
	s.mean = sum / time.Duration(len(sorted))
	s.distribution = platform.NewDistribution(sorted)
	return s
}

// bench is one kernel variant with several sets of operands. Calls take the sets in turn, so they
// find their operands as far away as a real step would leave them.
type bench struct {
	run      func(*calls.Call)
	calls    []calls.Call
	nearSets int // number of sets that exceed the second-level cache
}

const (
	warmCalls   = 3
	minRepeats  = 10
	maxRepeats  = 10000
	maxSets     = 4096 // sets of operands
	drawnSets   = 64   // further sets repeat their contents
	seedOfBench = 7
)

// newBench allocates operand sets of at least nearBytes together, or of farBytes if that is more.
// Small calls get as many sets as are allowed.
func newBench(v *calls.Variant, s *calls.Spec, params []float64, nearBytes, farBytes int64) *bench {
	b := &bench{run: v.Run(s.Type)}
	contents := newContents(s)
	var work []byte
	if v.WorkspaceBytes != nil {
		work = host.AlignedBytes(v.WorkspaceBytes(s))
	}
	for held := int64(0); len(b.calls) == 0 || held < max(nearBytes, farBytes) && len(b.calls) < maxSets; {
		call := calls.Call{Params: params, Work: work}
		for i, o := range s.Operands {
			buf := dag.Buffer{Shape: o.Shape, Type: o.Type}
			data := host.AlignedBytes(buf.Bytes())
			held += buf.Bytes()
			copy(data, contents.bytes(len(b.calls), i))
			call.Args = append(call.Args, calls.Bind(unsafe.Pointer(unsafe.SliceData(data)), &buf, nil, o.Mode))
		}
		b.calls = append(b.calls, call)
		if b.nearSets == 0 && (held >= nearBytes || len(b.calls) == drawnSets) {
			b.nearSets = len(b.calls)
		}
	}
	b.nearSets = cmp.Or(b.nearSets, len(b.calls))
	return b
}

// fill gives an operand contents that any kernel accepts: reals and scalars in (0, 1), or in (-1,
// 1) if they are signed, as inputs of layers, pixels and masks of 0 and 1, indices 0. A mask selects a position of a
// window, and all pools of our models have at least two.
func fill(a *calls.Arg, t dag.DType, rng *rand.Rand, signed bool) {
	scale, shift := 1.0, 0.0
	if signed {
		scale, shift = 2, -1
	}
	switch t {
	case dag.Float32:
		x := calls.Data[float32](a)
		for i := range x {
			x[i] = float32(scale*rng.Float64() + shift)
		}
	case dag.Float64:
		x := calls.Data[float64](a)
		for i := range x {
			x[i] = scale*rng.Float64() + shift
		}
	case dag.BFloat16:
		x := calls.Data[uint16](a)
		for i := range x {
			x[i] = calls.ToBFloat16(float32(scale*rng.Float64() + shift))
		}
	case dag.Uint8:
		x := calls.Data[uint8](a)
		for i := range x {
			x[i] = uint8(rng.IntN(2))
		}
	}
}

// measure repeats the call for about a duration, at least once, with sets operand sets in turn.
// With one set the operands are warm.
func (b *bench) measure(ctx context.Context, budget time.Duration, sets int) []time.Duration {
	times := make([]time.Duration, 0, maxRepeats)
	begin := time.Now()
	for i := 0; i < warmCalls && (i == 0 || time.Since(begin) < budget); i++ {
		b.run(&b.calls[i%sets])
	}
	begin = time.Now()
	for i := 0; i < maxRepeats && ctx.Err() == nil; i++ {
		spent := time.Since(begin)
		if i > 0 && (spent >= budget && i >= minRepeats || spent >= 10*budget) {
			break
		}
		start := time.Now()
		b.run(&b.calls[i%sets])
		times = append(times, time.Since(start))
	}
	return times
}
