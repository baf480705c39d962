package shares

import "dahl/dag"

// Step is the work of a training step in every lowering, and how much its tiles move.
type Step struct {
	*dag.Step
	forms [][]form // by work
}

// form is a form of some work with the levels of its tiles, and of all tiles of a result if it sums.
type form struct {
	*dag.Form
	levels, results []level
}

// NewStep finds how much tiles move.
func NewStep(of *dag.Step) *Step {
	s := &Step{of, make([][]form, len(of.Work))}
	for i := range of.Work {
		for k := range of.Work[i].Forms {
			f := form{Form: &of.Work[i].Forms[k]}
			if f.levels = f.newLevels(); f.Summed != 0 {
				f.results = f.ofResult().newLevels()
			}
			s.forms[i] = append(s.forms[i], f)
		}
	}
	return s
}

// ofResult is the form as its results are cut, each with all terms of its sum.
func (f *form) ofResult() *form {
	of := &dag.Form{Moved: make([]dag.Moved, len(f.Moved))}
	for i, m := range f.Moved {
		of.Moved[i].Bytes = m.Bytes
	}
	for s, extent := range f.Sides {
		if f.Summed>>s&1 == 1 {
			continue
		}
		for i, m := range f.Moved {
			of.Moved[i].Depends |= m.Depends >> s & 1 << len(of.Sides)
		}
		of.Sides = append(of.Sides, extent)
	}
	return &form{Form: of}
}
