// Package problem has one step of a graph on a platform as those see it who look at many plans of it: the workers and clocks
// that tasks may have, the times of calls there, and the transfers between memories.
//
// Read first: [Problem]; readers and writers are in data.go, transfers in way.go.
//
// Local search, the exact search and certificates make their own tables of it: local search times all of a plan,
// the exact search a part of one, and a certificate bounds all plans.
//
// # Who says when a task ends
//
// The simulator does, and so does the estimate of package improve, which a test compares with the simulator. Nothing else
// has a plan to time. HEFT and package place make a plan and its order of copies, by times in which nothing is shared. The
// exact search, certificates and the bounds of package schedule say when a task ends at the earliest.
package problem
