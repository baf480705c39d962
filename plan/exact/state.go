package exact

import (
	"math/bits"

	"dahl/platform"
)

// step gives a task to a worker, after all tasks that the worker has been given.
type step struct {
	task, setting int32
	worker        platform.WorkerID
}

// state is a part of a plan: tasks with all that they wait for, and when they run in the model.
type state struct {
	steps   []step
	done    uint64              // tasks
	used    uint64              // devices
	free    []int64             // by worker: from when it can run the next task
	clock   []platform.ClockID  // by worker: of its last task
	end     []int64             // by task of done
	at      []platform.MemoryID // by task of done
	reached []uint64            // by piece: memories to which it moved
	bound   []platform.WorkerID // by group: its worker, -1 if none yet
	last    int64               // the end of the last task
	joules  float64             // of calls, copies and changes, above the power of everything idle
}

func (m *model) newState() state {
	n := len(m.tasks)
	x := state{steps: make([]step, 0, n), free: make([]int64, len(m.platform.Workers)), clock: make([]platform.ClockID, len(m.platform.Workers)), end: make([]int64, n),
		at: make([]platform.MemoryID, n), reached: make([]uint64, len(m.pieces)), bound: make([]platform.WorkerID, m.groups)}
	for w := range x.clock {
		x.clock[w] = m.platform.Devices[m.platform.Workers[w].Device].AtClock
	}
	for i := range x.bound {
		x.bound[i] = -1
	}
	return x
}

// copy makes x equal to another state of the same model.
func (x *state) copy(of *state) {
	x.steps = append(x.steps[:0], of.steps...)
	x.done, x.used, x.last, x.joules = of.done, of.used, of.last, of.joules
	copy(x.free, of.free)
	copy(x.clock, of.clock)
	copy(x.end, of.end)
	copy(x.at, of.at)
	copy(x.reached, of.reached)
	copy(x.bound, of.bound)
}

// isReady reports whether a task is not part of the plan and all that it waits for is.
func (x *state) isReady(tasks []task, t int) bool {
	return x.done&(1<<t) == 0 && tasks[t].before&^x.done == 0
}

// allows reports whether a task may be put on a worker of a device that can run it.
func (m *model) allows(x *state, t int, w platform.WorkerID) bool {
	own := &m.tasks[t]
	return own.allowed[w] && (own.group < 0 || x.bound[own.group] < 0 || x.bound[own.group] == w)
}

// assign adds a task to the part of a plan.
func (m *model) assign(x *state, s step) {
	own := &m.tasks[s.task]
	of := &own.settings[s.setting]
	d := &m.devices[of.device]
	start := max(x.free[s.worker], m.arrival(x, int(s.task), d.memory))
	if d.switches && x.clock[s.worker] != of.clock {
		start += d.switchTime
		x.joules += d.switchJ
	}
	for _, p := range own.reads {
		x.joules += m.move(x, p, d.memory)
	}
	end := start + d.dispatch + of.takes
	x.steps = append(x.steps, s)
	x.done |= 1 << s.task
	x.used |= 1 << of.device
	x.free[s.worker], x.clock[s.worker] = end, of.clock
	x.end[s.task], x.at[s.task] = end, d.memory
	x.last = max(x.last, end)
	x.joules += of.joules
	if own.group >= 0 {
		x.bound[own.group] = s.worker
	}
}

// source is where a piece was made, or was before the run.
func (m *model) source(x *state, p *piece) platform.MemoryID {
	if p.writer < 0 {
		return p.home
	}
	return x.at[p.writer]
}

// arrival returns the time when a memory has all inputs of a task, as far as they are part of the plan.
func (m *model) arrival(x *state, t int, memory platform.MemoryID) (at int64) {
	own := &m.tasks[t]
	for before := own.before & x.done; before != 0; before &= before - 1 {
		at = max(at, x.end[bits.TrailingZeros64(before)])
	}
	for _, i := range own.reads {
		p := &m.pieces[i]
		switch {
		case p.writer < 0:
			at = max(at, p.ways[p.home][memory])
		case x.done&(1<<p.writer) != 0:
			at = max(at, x.end[p.writer]+p.ways[x.at[p.writer]][memory])
		}
	}
	return at
}

// move notes that a piece moves to a memory, and returns the joules.
func (m *model) move(x *state, i int32, to platform.MemoryID) (joules float64) {
	p := &m.pieces[i]
	from := m.source(x, p)
	if m.staged && m.problem.Ways[from][to].PassesHost {
		stage := m.platform.HostMemory()
		joules = m.move(x, i, stage)
		from = stage
	}
	if from == to || x.reached[i]&(1<<to) != 0 {
		return joules
	}
	x.reached[i] |= 1 << to
	return joules + p.hops[from][to]
}

// restOf returns the joules per nanosecond of everything idle, in a run on some devices.
func (m *model) restOf(used uint64) float64 {
	sum := m.restJ
	for d := range m.devices {
		if used&(1<<d) != 0 {
			sum += m.devices[d].restJ
		} else {
			sum += m.devices[d].unusedJ
		}
	}
	return sum
}
