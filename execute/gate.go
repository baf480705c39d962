package execute

import "sync/atomic"

// gate lets the lanes of a run begin its steps, until it is closed. The furthest step that any
// lane has begun by then is the last: every lane does it whole, and none begins another.
//
// Both facts are one word, so that no lane can begin a step between the look at the furthest
// step and the closing.
type gate struct{ state atomic.Int64 } // furthest step begun, and closed

const closed = 1 << 32

// begin reports whether a lane may begin a step. The first step may always begin.
func (g *gate) begin(step int32) bool {
	for {
		state := g.state.Load()
		switch {
		case step <= int32(state):
			return true
		case state&closed != 0:
			return false
		case g.state.CompareAndSwap(state, int64(step)):
			return true
		}
	}
}

// isClosed reports whether the last step is known.
func (g *gate) isClosed() bool { return g.state.Load()&closed != 0 }

// over reports whether a step will never begin.
func (g *gate) over(step int32) bool {
	state := g.state.Load()
	return state&closed != 0 && step > int32(state)
}

// close makes the furthest step begun the last one.
func (g *gate) close() { g.state.Or(closed) }

// steps is how many of the asked steps run.
func (g *gate) steps(asked int) int {
	if state := g.state.Load(); state&closed != 0 {
		return int(int32(state)) + 1
	}
	return asked
}
