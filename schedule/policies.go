package schedule

import (
	"dahl/naming"
)

// Policies is the table of schedulers.
func Policies() []PolicyInfo {
	return []PolicyInfo{
		{
			Name:     "eager",
			Sentence: "one central queue by priority, then name; an idle worker takes the first task it can run",
			Paper:    "R. L. Graham, Bounds for certain multiprocessing anomalies, Bell System Technical Journal 45(9), 1966",
			Dynamic:  func(*Problem) Policy { return &eager{} },
		},
		{
			Name:     "dmda",
			Sentence: "a task that becomes ready goes where it is expected to end first, transfers included",
			Paper:    "C. Augonnet, S. Thibault, R. Namyst, P.-A. Wacrenier, StarPU, Concurrency and Computation: Practice and Experience 23(2), 2011",
			Dynamic:  func(p *Problem) Policy { return newDMDA(p) },
		},
		{
			Name:     "dmdar",
			Sentence: "places as dmda does; a worker takes the waiting task with the fewest bytes missing in its memory",
			Paper:    "C. Augonnet, J. Clet-Ortega, S. Thibault, R. Namyst, Data-aware task scheduling on multi-accelerator based platforms, ICPADS 2010; StarPU handbook, scheduling policy dmdar",
			Dynamic:  func(p *Problem) Policy { return &dmdar{newDMDA(p)} },
		},
		{
			Name:     "heft",
			Sentence: "tasks by upward rank, each into the earliest gap in which it can end first; planned once, then replayed",
			Paper:    "H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE Transactions on Parallel and Distributed Systems 13(3), 2002",
			Static:   HEFT,
		},
		{
			Name:     dataParallel,
			Sentence: "as heft, but tasks on one part of a batch, or of the channels, rows or columns of a layer, stay in one memory",
			Paper:    "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, 2014",
			Static:   DataParallel,
		},
		{
			Name:     "replay",
			Sentence: "device and order of every task from a plan file",
		},
	}
}

// PolicyByName finds a line of the table.
func PolicyByName(name string) (PolicyInfo, error) {
	var known []string
	for _, info := range Policies() {
		if info.Name == name {
			return info, nil
		}
		known = append(known, info.Name)
	}
	return PolicyInfo{}, naming.Unknown("policy", name, known)
}
