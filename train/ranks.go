package train

import (
	"bytes"
	"context"
	"encoding/gob"

	"dahl/execute"
	"dahl/nn"
)

// Part is the part of a training that a rank other than rank 0 does: [execute.Runner.Serve] does what rank 0 runs.
type Part struct {
	*execute.Runner
	feed feeder
}

// Serve compiles the program for the node of a rank other than rank 0, and fills in the data. Where these are streamed, it reads the samples
// and labels that the rank's own tasks use.
func (w *Workload) Serve() (*Part, error) {
	p := &Part{feed: w.feeder()}
	var err error
	p.Runner, err = execute.New(w.Decision, execute.Options{Hooks: p.feed.hooks(), Poison: true, AnyClock: w.Options.AnyClock, Ranks: w.Options.Ranks,
		Told: func(graph, steps int, note []byte) error { return p.feed.follow(w, graph, steps, note) }})
	if err == nil && !w.Options.Stream {
		if err = w.Data.fill(p.Runner); err != nil {
			p.Runner.Close()
		}
	}
	if err != nil {
		return nil, asInput(err)
	}
	return p, nil
}

// Close ends the workers, and what is read for them.
func (p *Part) Close() {
	p.Runner.Close()
	p.feed.close()
}

// segment tells other ranks what a segment takes of a streamed set.
type segment struct {
	Order     []int32 // of samples; empty means the end of the one before
	Left      int     // samples of it
	StepsDone int     // before
}

// tell is the segment that begins.
func (f *feeder) tell() ([]byte, error) {
	s := segment{Left: len(f.order), StepsDone: f.stepsDone}
	if s.Left >= len(f.told) || !isRest(f.order, f.told[len(f.told)-s.Left:]) {
		s.Order = f.order
	}
	f.told = f.order
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&s)
	return b.Bytes(), err
}

// follow begins a segment of rank 0's.
func (f *feeder) follow(w *Workload, graph, steps int, note []byte) error {
	if !w.Options.Stream {
		return nil
	}
	var s segment
	if err := gob.NewDecoder(bytes.NewReader(note)).Decode(&s); err != nil {
		return err
	}
	if len(s.Order) > 0 {
		f.told = s.Order
	}
	f.told, f.stepsDone = f.told[len(f.told)-s.Left:], s.StepsDone
	g := w.Program.Graphs[graph]
	f.begin(context.Background(), w.splitOf(g), f.told, nn.BatchOf(g), steps)
	return nil
}
