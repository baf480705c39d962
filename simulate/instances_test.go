package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// stages is a pipeline: stage i runs on device d<i> for 100 ms, writes a<i>, and reads a<i-1>. Stage
// 1 also writes x, which the last one reads. There are so many copies of x, and 2 of the others. With
// two stages x is all that moves on.
func stages(t testing.TB, n, copies int) *dag.Graph {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "graph stages\nbuffer x float32 [16] activation copies=%d\n", copies)
	for i := 1; i < n && n > 2; i++ {
		fmt.Fprintf(&b, "buffer a%d float32 [16] activation copies=2\n", i)
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
		fmt.Fprintf(&b, " costs d%d=%d\n", i, 100*time.Millisecond)
	}
	g, err := dag.ParseText(strings.NewReader(b.String()), "test")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// oneMemory is so many devices on one memory.
func oneMemory(t testing.TB, devices int) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "one", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}}}
	for i := 1; i <= devices; i++ {
		p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprintf("d%d", i), Kind: "cpu", Count: 1, PowerSource: platform.Guess})
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCopiesOfABuffer: stage 1 of step k+n overwrites the x of step k, which the last of s stages has
// read 100·s ms after stage 1 of step k began. So stage 1 begins at most n times in 100·s ms: the
// period is 100·s/n ms, and no less than the 100 ms of a stage. For the buffers between neighbours s
// is 2 and n is 2. The bound follows the same circle; both are exact over 60 steps, a multiple of
// each n. Before the last step's end, n copies of x were live, and at most 2 of each other.
func TestCopiesOfABuffer(t *testing.T) {
	const steps, ms = 121, time.Millisecond // the period is that of the last 60 steps
	for _, c := range []struct {
		stages, copies int
		period         time.Duration
	}{
		{2, 1, 200 * ms}, {2, 2, 100 * ms}, {2, 3, 100 * ms},
		{6, 1, 600 * ms}, {6, 2, 300 * ms}, {6, 3, 200 * ms}, {6, 4, 150 * ms}, {6, 5, 120 * ms}, {6, 6, 100 * ms}, {6, 8, 100 * ms},
	} {
		p := problem(t, stages(t, c.stages, c.copies), oneMemory(t, c.stages), steps)
		if err := p.Graph.Check(); err != nil {
			t.Fatal(err)
		}
		fewer := *p
		fewer.Steps = steps - 60
		if grows := lowerBound(t, p) - lowerBound(t, &fewer); grows != 60*c.period {
			t.Errorf("%+v: the bound grows by %v in 60 steps", c, grows)
		}
		for _, info := range schedule.Policies() {
			s := runPolicy(t, p, info)
			if err := s.Check(p); err != nil {
				t.Fatalf("%+v: %s: %v", c, info.Name, err)
			}
			if s.Period != c.period || lowerBound(t, p) > s.Makespan {
				t.Errorf("%+v: %s: period %v; makespan %v, bound %v", c, info.Name, s.Period, s.Makespan, lowerBound(t, p))
			}
		}
	}
}
