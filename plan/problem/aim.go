package problem

import "time"

// Aim says what a plan is to make small.
type Aim struct {
	Objective
	Steady   bool          // of a step among many; else of one that runs alone
	Deadline time.Duration // of a step; zero means that it may take as long as it likes
}

// Objective is a quantity of a step.
type Objective string

// The objectives: the makespan in seconds, the joules over it, and their product.
const (
	Time   Objective = "time"
	Energy Objective = "energy"
	EDP    Objective = "edp"
)

// Objectives lists them.
func Objectives() []string { return []string{string(Time), string(Energy), string(EDP)} }

// Of is the value of a schedule.
func (o Objective) Of(makespan time.Duration, joules float64) float64 {
	switch o {
	case Time:
		return makespan.Seconds()
	case Energy:
		return joules
	}
	return float64(joules * makespan.Seconds())
}
