package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/place"
	"dahl/schedule/policy"
)

// stages is a pipeline: stage i runs on device d<i> for a time, writes a<i>, and reads a<i-1>. Stage
// 1 also writes x, which the last one reads. There are so many copies of x, and of the others. With
// two stages x is all that moves on.
func stages(t testing.TB, n int, each time.Duration, copies, others int) *dag.Graph {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "graph stages\nbuffer x float32 [16] activation copies=%d\n", copies)
	for i := 1; i < n && n > 2; i++ {
		fmt.Fprintf(&b, "buffer a%d float32 [16] activation copies=%d\n", i, others)
	}
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "task stage%d\n", i)
		if i < n && n > 2 {
			fmt.Fprintf(&b, " write a%d\n", i)
		}
		if i > 1 && n > 2 {
			fmt.Fprintf(&b, " read a%d\n", i-1)
		}
		if i == 1 {
			b.WriteString(" write x\n")
		}
		if i == n {
			b.WriteString(" read x\n")
		}
		fmt.Fprintf(&b, " costs d%d=%d\n", i, each)
	}
	g := must.Get(dag.ParseText(strings.NewReader(b.String()), "test"))(t)
	return g
}

// oneMemory is so many devices on one memory.
func oneMemory(t testing.TB, devices int) *platform.Platform {
	t.Helper()
	list := slices.Repeat([]platform.Device{testmachine.CPU(1)}, devices)
	for i := range list {
		list[i].Name = fmt.Sprintf("d%d", i+1)
	}
	return testmachine.Shared(t, list...)
}

// withMemoryBeside has one memory more, whose devices were not selected.
func withMemoryBeside(t testing.TB, p *platform.Platform) *platform.Platform {
	t.Helper()
	q := *p
	q.Memories = append(slices.Clone(p.Memories), platform.Memory{Name: "hbm", BandwidthBytesPerSec: 1e9})
	must.Do(t, q.Complete())
	return &q
}

// TestCopiesOfABuffer: stage 1 of step k+n overwrites the x of step k, which the last of s stages has
// read 100·s ms after stage 1 of step k began. So stage 1 begins at most n times in 100·s ms: the
// period is 100·s/n ms, and no less than the 100 ms of a stage. For the buffers between neighbours s
// is 2 and n is 2. The bound follows the same circle; both are exact over 60 steps, a multiple of
// each n. What is live at once is derived where all stages overlap, and where no step overlaps
// another, when there is x beside what a stage reads and writes.
func TestCopiesOfABuffer(t *testing.T) {
	const steps, ms = 121, time.Millisecond // the period is that of the last 60 steps
	for _, c := range []struct {
		stages, copies int
		period         time.Duration
		peak           int64 // in buffers of 64 bytes; 0: not derived
	}{
		{2, 1, 200 * ms, 1}, {2, 2, 100 * ms, 2}, {2, 3, 100 * ms, 2},
		{6, 1, 600 * ms, 1 + 2}, {6, 2, 300 * ms, 0}, {6, 3, 200 * ms, 0}, {6, 4, 150 * ms, 0}, {6, 5, 120 * ms, 0}, {6, 6, 100 * ms, 6 + 5*2}, {6, 8, 100 * ms, 6 + 5*2},
	} {
		p := problem(t, stages(t, c.stages, 100*ms, c.copies, 2), oneMemory(t, c.stages), steps)
		must.Do(t, p.Graph.Check())
		fewer := *p
		fewer.Steps = steps - 60
		if grows := lowerBound(t, p) - lowerBound(t, &fewer); grows != 60*c.period {
			t.Errorf("%+v: the bound grows by %v in 60 steps", c, grows)
		}
		for _, info := range policy.All() {
			beside := *p
			beside.Platform = withMemoryBeside(t, p.Platform)
			if s := runPolicy(t, &beside, info); s.Period != c.period || audit.Check(s, &beside) != nil {
				t.Errorf("%+v: %s: period %v beside a memory without devices: %v", c, info.Doc().Name, s.Period, audit.Check(s, &beside))
			}
			s := runPolicy(t, p, info)
			if err := audit.Check(s, p); err != nil {
				t.Fatalf("%+v: %s: %v", c, info.Doc().Name, err)
			}
			if s.Period != c.period || lowerBound(t, p) > s.Makespan {
				t.Errorf("%+v: %s: period %v; makespan %v, bound %v", c, info.Doc().Name, s.Period, s.Makespan, lowerBound(t, p))
			}
			if c.peak > 0 && s.PeakBytes[0] != 64*c.peak {
				t.Errorf("%+v: %s: %d bytes live", c, info.Doc().Name, s.PeakBytes[0])
			}
		}
	}
}

// TestCopiesCount: two versions of x, 64 bytes each, are live when stage 1 writes the second and stage 2 reads
// the first. A memory of 128 bytes holds them; in one of 127 every policy is refused before the run.
func TestCopiesCount(t *testing.T) {
	for capacity, fits := range map[int64]bool{128: true, 127: false} {
		pl := oneMemory(t, 2)
		pl.Memories[0].CapacityBytes = capacity
		must.Do(t, pl.Complete())
		priced := must.Get(priceOf(problem(t, stages(t, 2, 100, 2, 1), pl, 3)))(t)
		for _, info := range policy.All() {
			if _, err := priced.Decide(schedule.Choice{Policy: info}); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "would hold 128 B") {
				t.Errorf("%s in %d bytes: %v", info.Doc().Name, capacity, err)
			}
		}
	}
}

// twoMemoriesOf is the first half of some devices on one memory, the others on another. A copy of 64
// bytes takes 6 ms, beside any others.
func twoMemoriesOf(t testing.TB, devices int) *platform.Platform {
	t.Helper()
	p := oneMemory(t, devices)
	p.Memories = append(p.Memories, platform.Memory{Name: "hbm", BandwidthBytesPerSec: 1e9})
	p.Links = []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e12, Latency: 6*time.Millisecond - 1, Sharing: platform.Fatpipe, PowerSource: platform.Guess}}
	p.Routes = []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}}
	for i := devices / 2; i < devices; i++ {
		p.Devices[i].Kind, p.Devices[i].Memory = "emulated", 1
	}
	must.Do(t, p.Complete())
	return p
}

// planned are copies of x at ram and at hbm, and three of the others of six stages; nil stays nil.
func planned(stages int, ofX []int) (counts []place.PlannedVersions) {
	for m, n := range ofX {
		counts = append(counts, place.PlannedVersions{Memory: []string{"ram", "hbm"}[m], Buffer: "x", Versions: n})
	}
	for _, at := range []string{"ram a1", "ram a2", "ram a3", "hbm a3", "hbm a4", "hbm a5"} {
		if ofX != nil && stages == 6 {
			counts = append(counts, place.PlannedVersions{Memory: at[:3], Buffer: at[4:], Versions: 3})
		}
	}
	return counts
}

// TestCopiesInTwoMemories: six stages of 99 ms, three at each memory, and 6 ms for what stage 3 hands to
// stage 4, are 600 ms from the beginning of a step to its end. With n copies of x at both memories,
// stage 1 of step k+n waits for the last stage of step k as in one memory: the period is 600/n ms. A
// plan with n copies at ram and m at hbm has four circles, and the longest is the period:
//
//	stage 1 and the copy of x, which frees what it read: 99 + 6 ms for n steps
//	the copy of x and stage 6, which frees what it read: 6 + 99 ms for m steps
//	stage 1 after the copy of n steps before, and that after stage 6 of m steps before: 600 + 6 ms for n + m steps
//	600 ms for the greater of n and m, since the schedule is one of the graph with so many copies
//
// Two stages of 97 ms and the copy between them are 200 ms. Buffers that a plan reserves are of 64 bytes.
func TestCopiesInTwoMemories(t *testing.T) {
	const steps, ms = 121, time.Millisecond
	for i, c := range []struct {
		stages, copies  int
		planned         []int // copies of x at ram and at hbm; nil: the plan does not say
		period          time.Duration
		atRAM, atOthers int64 // buffers reserved; 0: not derived
	}{
		{stages: 2, copies: 1, period: 200 * ms, atRAM: 1, atOthers: 1},
		{stages: 2, copies: 2, period: 100 * ms, atRAM: 2, atOthers: 2},
		{stages: 2, copies: 3, period: 97 * ms, atRAM: 3, atOthers: 3},
		{stages: 2, copies: 2, planned: []int{1, 1}, period: 200 * ms, atRAM: 1, atOthers: 1},
		{stages: 6, copies: 1, period: 600 * ms},
		{stages: 6, copies: 4, period: 150 * ms, atRAM: 4 + 3*3, atOthers: 4 + 3*3},
		{stages: 6, copies: 6, period: 100 * ms, atRAM: 6 + 3*3, atOthers: 6 + 3*3},
		{stages: 6, copies: 1, planned: []int{2, 6}, period: 100 * ms, atRAM: 2 + 3*3, atOthers: 6 + 3*3},
		{stages: 6, copies: 3, planned: []int{1, 6}, period: 105 * ms, atRAM: 1 + 3*3, atOthers: 6 + 3*3},
		{stages: 6, copies: 3, planned: []int{6, 1}, period: 105 * ms, atRAM: 6 + 3*3, atOthers: 1 + 3*3},
		{stages: 6, copies: 3, planned: []int{4, 3}, period: 150 * ms, atRAM: 4 + 3*3, atOthers: 3 + 3*3},
	} {
		each := 99 * ms
		if c.stages == 2 {
			each = 97 * ms
		}
		p := problem(t, stages(t, c.stages, each, c.copies, 3), twoMemoriesOf(t, c.stages), steps)
		plan := must.Get(policy.HEFT.Plan(p))(t)
		plan.Versions = planned(c.stages, c.planned)
		priced := must.Get(priceOf(p))(t)
		d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if i%2 == 1 { // a policy that plans so
			d, err = priced.Decide(schedule.Choice{Policy: policy.New(schedule.Doc{Name: "planner"}, func(*schedule.Problem) (*schedule.Plan, error) { return plan, nil })})
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
		s := must.Get(Run(context.Background(), d, 0, steps, Options{}))(t)
		if err := audit.Check(s, d.Problem(0, steps, false)); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		reserved := d.ReservedBytes()
		if s.Period != c.period || s.PeakBytes[0] > reserved[0] || s.PeakBytes[1] > reserved[1] || d.Priced.LowerBound(0, steps) > s.Makespan {
			t.Errorf("%+v: period %v; %d bytes live, %d reserved", c, s.Period, s.PeakBytes, reserved)
		}
		if c.atRAM > 0 && (reserved[0] != 64*c.atRAM || reserved[1] != 64*c.atOthers) {
			t.Errorf("%+v: %d bytes reserved", c, reserved)
		}
	}
}
