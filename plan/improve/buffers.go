package improve

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// withVersions is the graph with as many copies of its buffers as the first plan or the options say.
func (s *search) withVersions() (*dag.Graph, error) {
	listed, err := s.from.VersionsIn(s.graph, s.priced.Platform)
	if err != nil {
		return nil, err
	}
	counts := slices.Repeat([]int32{1}, len(s.graph.Buffers))
	for b := range counts {
		switch {
		case listed == nil:
			counts[b] = s.graph.Versions(dag.BufferID(b))
		default:
			for _, here := range listed {
				counts[b] = max(counts[b], here[b])
			}
		}
		buffer := &s.graph.Buffers[b]
		anew := buffer.ViewOf == dag.None && s.graph.WrittenStorages()[b] && !s.graph.Carried(dag.BufferID(b)) && buffer.Home == "" &&
			buffer.Role != dag.Parameter && buffer.Role != dag.State
		if anew {
			counts[b] = max(counts[b], s.options.Versions)
		}
	}
	if listed == nil && s.options.Versions < 2 {
		return s.graph, nil
	}
	s.versions = counts
	with, err := s.graph.WithVersions(counts)
	if err != nil {
		return nil, fmt.Errorf("copies of buffers of graph %q: %w", s.graph.Name, err)
	}
	return with, nil
}

// plannedVersions lists the copies of buffers in the memories where tasks use them.
func (s *search) plannedVersions(x *point) (list []place.PlannedVersions) {
	if s.versions == nil {
		return nil
	}
	g, p := s.graph, s.priced.Platform
	listed := map[place.PlannedVersions]bool{}
	for t, w := range x.worker {
		for _, a := range g.Tasks[t].Accesses {
			b := g.Storage(a.Buffer)
			c := place.PlannedVersions{Memory: p.Memories[p.MemoryOf(platform.WorkerID(w))].Name, Buffer: g.Buffers[b].Name, Versions: int(s.versions[b])}
			if c.Versions > 1 && !listed[c] {
				listed[c] = true
				list = append(list, c)
			}
		}
	}
	return list
}
