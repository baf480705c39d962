package pipeline

import (
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// Model is a step of a graph on a platform. Nobody changes it.
type Model struct {
	*problem.Data
	p   *schedule.Problem
	g   *dag.Graph
	fit *schedule.Fit
}

// New makes the model of a problem.
func New(p *schedule.Problem) (*Model, error) {
	fit, err := schedule.NewFit(p)
	if err != nil {
		return nil, err
	}
	data, err := problem.NewData(p.Platform, p.Graph, true)
	if err != nil {
		return nil, err
	}
	return &Model{Data: data, p: p, g: p.Graph, fit: fit}, nil
}

// takes is how long a task keeps a worker.
func (m *Model) takes(t dag.TaskID, w platform.WorkerID) int64 { return int64(m.fit.Occupies(t, w)) }

// memoryOf is the memory of a task with a place, or of what was there before the run.
func (m *Model) source(piece *problem.Piece, workers []platform.WorkerID) platform.MemoryID {
	if int(piece.Writer) == len(workers) {
		return piece.Home
	}
	return m.p.Platform.MemoryOf(workers[piece.Writer])
}

// Period is the least period of tasks with a place: the work of a worker, or the time of a link for what it carries in a step.
func (m *Model) Period(workers []platform.WorkerID) int64 {
	p := m.p.Platform
	work, links := make([]int64, len(p.Workers)), make([]float64, 2*len(p.Links))
	for t, w := range workers {
		work[w] += m.takes(dag.TaskID(t), w)
	}
	for i := range m.Pieces {
		m.eachHop(&m.Pieces[i], workers, func(from, to platform.MemoryID) {
			for _, share := range m.Ways[from][to].Shares {
				links[share.Link] += share.NsPerByte * float64(m.Pieces[i].Bytes)
			}
		})
	}
	longest := int64(1)
	for _, ns := range work {
		longest = max(longest, ns)
	}
	for _, ns := range links {
		longest = max(longest, int64(ns))
	}
	return longest
}

// eachHop visits the movements of a piece in a step, each memory once. What stays from before the run does not move.
func (m *Model) eachHop(piece *problem.Piece, workers []platform.WorkerID, visit func(from, to platform.MemoryID)) {
	if int(piece.Writer) == len(workers) {
		return
	}
	from := m.source(piece, workers)
	reached := append(make([]platform.MemoryID, 0, 8), from)
	for _, r := range piece.Readers {
		to := m.p.Platform.MemoryOf(workers[r.Of])
		if slices.Contains(reached, to) {
			continue
		}
		at := from
		for _, stop := range m.p.Platform.Stops(from, to) {
			if !slices.Contains(reached, stop) {
				visit(at, stop)
				reached = append(reached, stop)
			}
			at = stop
		}
	}
}
