package execute

import "dahl/execute/driver"

// A batch is a run of neighbouring tasks on a device's lane that works like one task: only its
// first task waits for other lanes, and other lanes wait only for its last. All have one lag. (It has nothing to do
// with the samples of a training batch.) Where tasks are not timed one by one, a batch is issued
// at once: the waits of the first task, the work of all, and one event. Order, results and progress are
// as of single tasks; only the number of events differs.
type batch struct {
	first, end int32 // positions in the lane's list
	// captured are the captured graphs of which one call issues one, step by step in turn. Nil means
	// that the batch's tasks are issued one by one.
	captured []driver.CaptureID
}

// batches are the batches of a lane's list, in order.
type batches struct {
	list    []batch
	batchOf []int32 // by position in the lane's list: its batch
}

// cut finds the longest batches of a lane's list. For a run that is recorded, every task is one.
func (r *replay) cut(lane int, singly bool) *batches {
	list := r.lists[lane]
	starts := make([]bool, len(list)+1)
	for i := range list {
		starts[i] = singly || i == 0 || list[i].lag != list[i-1].lag || list[i].firstWait < list[i].endWait
	}
	for i := range r.waits {
		if w := &r.waits[i]; int(w.worker) == lane {
			starts[mod(w.need-1, w.length)+1] = true
		}
	}
	s := &batches{}
	for i := range list {
		if starts[i] {
			s.list = append(s.list, batch{first: int32(i), end: int32(i)})
		}
		n := len(s.list) - 1
		s.list[n].end++
		s.batchOf = append(s.batchOf, int32(n))
	}
	return s
}

// mod is the remainder, never negative.
func mod(a, b int64) int64 { return (a%b + b) % b }

// total is the number of batches in a number of periods.
func (s *batches) total(periods int) int64 { return int64(len(s.list)) * int64(periods) }

// at is batch number n, counted over all periods, and its period.
func (s *batches) at(n int64) (*batch, int64) {
	size := int64(len(s.list))
	return &s.list[n%size], n / size
}

// ended is how many tasks have ended when n batches have.
func (s *batches) ended(n int64) int64 {
	if n == 0 {
		return 0
	}
	last, period := s.at(n - 1)
	return period*int64(len(s.batchOf)) + int64(last.end)
}

// needed is the number of batches that end before a number of tasks has ended. Without such a batch it
// is at most 0.
func (s *batches) needed(tasks int64) int64 {
	if tasks <= 0 {
		return 0
	}
	size := int64(len(s.batchOf))
	period, i := (tasks-1)/size, (tasks-1)%size
	return period*int64(len(s.list)) + int64(s.batchOf[i]) + 1
}

// captureLeast is the least number of calls that are worth a capture: CUDA issues a captured
// graph in about the time of two launches. captureMost bounds the captures of a batch, one for each
// step until it works on the same copies of its operands again.
const (
	captureLeast = 3
	captureMost  = 16
)

// captureBatches captures the batches of a device's workers in a step of a graph, where the
// driver can and it pays.
func (d *device) captureBatches(c *compiledGraph) error {
	able, ok := d.Driver.(driver.Capturer)
	if !ok {
		return nil
	}
	for _, l := range d.lanes {
		if l.Worker < 0 { // batches of copies are short, since others wait for their results
			continue
		}
		list, parts := c.ahead.lists[l.id], c.batches[l.id]
		for i := range parts.list {
			s := &parts.list[i]
			tasks := list[s.first:s.end]
			calls, all := 0, int32(1)
			for _, it := range tasks {
				t := &c.issues[it.task]
				calls += len(t.copies)
				if t.launch >= 0 {
					calls++
				}
				all = leastCommonMultiple(all, int32(1+len(t.later)))
			}
			if calls < captureLeast || all > captureMost {
				continue
			}
			for step := range all {
				captured, err := able.Capture(l.stream, func() error {
					for _, it := range tasks {
						if err := d.start(l.stream, c.issues[it.task].at(step)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
				s.captured = append(s.captured, captured)
			}
		}
	}
	return nil
}

// Issue counts how devices issue a step of a run that is not recorded.
type Issue struct {
	Tasks    int `json:"tasks"`    // kernel calls and copies
	Segments int `json:"segments"` // batches; others wait for them, and they for others, as a whole
	Captured int `json:"captured"` // tasks in captured graphs
	Graphs   int `json:"graphs"`   // captured graphs, each issued by one call
}

// Issue counts for one graph. All counts are zero where devices run nothing of it, or a policy
// decides.
func (r *Runner) Issue(graph int) (n Issue) {
	for _, parts := range r.graphs[graph].batches {
		if parts == nil {
			continue
		}
		n.Tasks, n.Segments = n.Tasks+len(parts.batchOf), n.Segments+len(parts.list)
		for _, s := range parts.list {
			if s.captured != nil {
				n.Captured, n.Graphs = n.Captured+int(s.end-s.first), n.Graphs+1
			}
		}
	}
	return n
}
