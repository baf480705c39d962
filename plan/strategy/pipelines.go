package strategy

import (
	"dahl/schedule"
	"dahl/schedule/policy"
)

// The pipelines have one stage on each device, or several in turn, and every micro-batch passes all of them. [dahl/schedule/policy.Pipelines]
// orders them. Stages are cut so that the longest one takes the least time. With p devices, v stages on each and m micro-batches a step
// takes (m·v + p − 1) times the slowest stage, (p − 1)/(m·v + p − 1) of which is the bubble: of the time of the work alone (p − 1)/(v·m).
//
// 1F1B with [Stash] is PipeDream's pipeline of straight stages. It has no bubble, since the next step begins before this one has ended: m·v times the slowest stage.
var (
	gpipe                 = ordered(policy.GPipe, "devices", "micro-batches")
	oneForwardOneBackward = stashing(ordered(policy.OneForwardOneBackward, "devices", "micro-batches"))
	interleaved           = ordered(policy.Interleaved, "devices", "stages-each", "micro-batches")
)

// ordered is the strategy of an order of micro-batches. The number of stages on each device is between the other two.
func ordered(order schedule.Policy, arguments ...string) Strategy {
	return Strategy{
		doc: order.Doc(), Arguments: arguments,
		Says: "transfers free, (m·v + p - 1) times the slowest of v stages on each of p devices, for m micro-batches",
		split: func(n []int) Split {
			s := Split{Order: order.Doc().Name, Stages: n[0], Each: 1, MicroBatches: n[len(n)-1]}
			if len(n) > 2 {
				s.Each = n[1]
			}
			return s
		},
	}
}

// stashing is the strategy with [Stash] as a word behind its numbers.
func stashing(s Strategy) Strategy {
	s.doc.Sentence += "; with " + Stash + " micro-batches are mini-batches that are updated one by one, and stages keep older weights for them, which trains other numbers"
	s.doc.Paper += "; with " + Stash + " " + pipeDream.doc.Paper
	s.Words, s.Says = []string{Stash}, s.Says+", or with "+Stash+" m·v times"
	return s
}
