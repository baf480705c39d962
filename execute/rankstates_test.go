package execute

import (
	"context"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/schedule"
)

// TestStatesThatChanged: a run sends another node the parameters of its tasks. The next run sends none, and the one after it the only one that
// has changed since.
func TestStatesThatChanged(t *testing.T) {
	prog := testProgram(t)
	opt := how{Platform: nodes(t, 1, 1), Variant: "go"}
	for _, g := range prog.Graphs {
		plan := &schedule.Plan{Policy: "second node", Order: make([][]dag.TaskID, 2)}
		for _, task := range randomPlan(g, 1, 1).Order[0] {
			w := 1
			if k, ok := (*kernels.Table)(nil).Lookup(g.Tasks[task].Op); ok && k.Host {
				w = 0
			}
			plan.Order[w] = append(plan.Order[w], task)
		}
		opt.Plans = append(opt.Plans, plan)
	}
	together(t, 2, 3, func(n *Ranks) error {
		opt := opt
		opt.Hooks, opt.Ranks = testHooks(nil), n
		r, err := newOn(prog, opt)
		if err != nil {
			return err
		}
		defer r.Close()
		if n.Rank > 0 {
			return r.Serve(nil) // with parameters of zeros
		}
		initialise(r)
		boxes := n.port.(losing).Port.(*testPort).mailboxes
		var moved []int
		for run := range 3 {
			if run == 2 {
				r.Bytes("w2")[0] ^= 1
			}
			before := boxes.bytesMoved()
			if _, err := r.Run(context.Background(), 1, 1, false); err != nil {
				return err
			}
			moved = append(moved, boxes.bytesMoved()-before)
		}
		all := 0
		for _, p := range []string{"w1", "b1", "w2", "b2"} {
			all += len(r.Bytes(p))
		}
		if w2 := len(r.Bytes("w2")); moved[0]-moved[1] != all || moved[2]-moved[1] != w2 {
			t.Errorf("runs moved %d bytes; the first has to move %d more than the second, and the third %d", moved, all, w2)
		}
		return nil
	})
}

func (m *mailboxes) bytesMoved() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moved
}
