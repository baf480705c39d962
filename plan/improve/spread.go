package improve

import (
	"dahl/plan/problem"
	"dahl/platform"
)

// spread is what moves between memories. A piece goes to each memory where some of its readers are, once.
type spread struct {
	*problem.Data
	platform *platform.Platform
	memories int
	host     platform.MemoryID
	engines  []engines // by memory
	lanes    [][]int32 // by memories, from and to: of engines, as in copies; -1: a copy needs none
}

// engines are the copy engines of a memory; 0: there is no limit.
type engines struct{ in, out int }

func newSpread(p *platform.Platform, data *problem.Data) *spread {
	s := &spread{Data: data, platform: p, memories: len(p.Memories), host: p.HostMemory()}
	for from := range platform.MemoryID(s.memories) {
		in, out := 0, 0
		if from != s.host {
			in, out = p.CopyEngines(from)
		}
		s.engines = append(s.engines, engines{in, out})
		row := make([]int32, s.memories)
		for to := range platform.MemoryID(s.memories) {
			switch in, out := p.EnginesTaken(from, to); {
			case in && from != to:
				row[to] = 2 * int32(to)
			case out && from != to:
				row[to] = 2*int32(from) + 1
			default:
				row[to] = -1
			}
		}
		s.lanes = append(s.lanes, row)
	}
	return s
}
