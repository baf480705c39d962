package improve

import "slices"

// follows are, by task, the longest paths from its start to the end of a step, as they tell how urgent a copy is for its reader.
type follows struct {
	of     []int64 // by task
	behind []int64 // by worker: of the next task of its sequence
}

// find finds the paths for the point of an evaluator, through the sequence of each worker, the order of tasks, and copies.
func (f *follows) find(c *transfers) {
	clear(f.of)
	clear(f.behind)
	for _, t := range slices.Backward(c.x.sequence) {
		w := c.x.worker[t]
		own := &c.workers[w]
		here := max(f.of[t], f.behind[w]) + int64(c.devices[own.device].Dispatch) + c.calls[c.slot[own.device]+int32(c.x.clock[t])][c.class[t]].takes
		f.of[t], f.behind[w] = here, here
		for _, before := range c.waits.of[c.waits.start[t]:c.waits.start[t+1]] {
			if before.back == 0 {
				f.of[before.task] = max(f.of[before.task], here)
			}
		}
		for _, r := range c.Reads[t] {
			p := &c.Pieces[r.Of]
			if r.Back > 0 || int(p.Writer) == c.tasks {
				continue
			}
			if from := c.in[p.Writer]; from != own.memory {
				f.of[p.Writer] = max(f.of[p.Writer], here+c.Ways[from][own.memory].Takes(p.Bytes))
			}
		}
	}
}
