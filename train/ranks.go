package train

import "dahl/execute"

// Serve compiles the program for the node of a rank other than rank 0, and fills in the data. [execute.Runner.Serve] then does what
// rank 0 runs.
func (w *Workload) Serve() (*execute.Runner, error) {
	r, err := execute.New(w.Decision, execute.Options{Poison: true, AnyClock: w.Options.AnyClock, Ranks: w.Options.Ranks})
	if err != nil {
		return nil, asInput(err)
	}
	if !w.Options.Stream {
		if err := w.Data.fill(r); err != nil {
			r.Close()
			return nil, asInput(err)
		}
	}
	return r, nil
}
