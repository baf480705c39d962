//go:build cuda

package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// describe names the task that would not wait, and for which lane.
func (m mutation) describe(c *compiledGraph) string {
	w := &c.replay.waits[m.wait]
	return fmt.Sprintf("task %q of lane %d without its wait for %d tasks of lane %d", c.graph.Tasks[c.replay.lists[m.lane][m.item].task].Name, m.lane, w.need, w.worker)
}

// TestCheckerFindsEveryMissingWait takes away the waits between the streams of a device,
// one at a time, and runs some steps on the driver library of the tests, whose checker ends
// the run if the wait was needed, and does not if it was implied by others.
func TestCheckerFindsEveryMissingWait(t *testing.T) {
	const steps, tries = 5, 4
	prog := testProgram(t)
	open := func() *Runner {
		return newRunner(t, prog, Options{Platform: cudaNode(t, 1, 1), Plans: spreadPlans(prog, 2, bySamples(2)), Hooks: testHooks(nil)})
	}
	r := open()
	if !strings.HasPrefix(r.devices[1].properties.Name, "Test device") {
		t.Skip("only the test driver checks the order")
	}
	local := r.devices[1].local
	all := mutations(r.graphs[0], func(lane int, w *wait) bool { return local[lane] >= 0 && local[w.worker] >= 0 })
	needed, found := 0, 0
	for _, m := range all {
		r.Close()
		var err error
		need := false
		for try := 0; try == 0 || need && try < tries && err == nil; try++ {
			r = open()
			c := r.graphs[0]
			c.replay.waits[m.wait].need = unlimited
			need = !ordered(c)
			_, err = r.Run(context.Background(), 0, steps, true)
			r.Close()
		}
		switch name := m.describe(r.graphs[0]); {
		case need && err == nil:
			t.Errorf("not found: %s", name)
		case !need && err != nil:
			t.Errorf("%s, which others imply: %v", name, err)
		}
		if need {
			needed++
			if err != nil {
				found++
			}
		}
	}
	t.Logf("%d waits within the device, %d of them needed, %d found", len(all), needed, found)
	if needed == 0 {
		t.Error("no wait is needed")
	}
}
