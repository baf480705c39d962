package schedule

// idleAtoms lists the atoms that may be evicted from a memory, in the order in which they leave.
// Atoms that no task needs leave first, the least recently used before the rest. A task counts if
// it was given to a worker of the memory and has not ended. Atoms that such a task names leave
// only then, and of those the one that became idle or named last: tasks mostly run in the order
// in which they were given, so that atom is needed last (L. A. Belady, A study of replacement
// algorithms for a virtual-storage computer, IBM Systems Journal 5(2), 1966; M. Gonthier, L.
// Marchal, S. Thibault, Memory-aware scheduling of tasks sharing data on multiple GPUs with
// dynamic runtime systems, IPDPS 2022, evict the data least used by the tasks allocated to a
// GPU).
type idleAtoms struct {
	named         []int32 // by atom: number of accesses by tasks that were given to a worker of the memory and have not ended
	spare, wanted recency // atoms that no such task names, and atoms that one does
}

func newIdleAtoms(n int) idleAtoms {
	return idleAtoms{named: make([]int32, n), spare: newRecency(n), wanted: newRecency(n)}
}

// has reports whether an atom is idle.
func (l *idleAtoms) has(a int32) bool { return l.spare.has(a) || l.wanted.has(a) }

func (l *idleAtoms) remove(a int32) {
	l.spare.remove(a)
	l.wanted.remove(a)
}

// put adds an atom that was used just now; putUnused adds one that came and was not used yet.
func (l *idleAtoms) put(a int32) { l.of(a).putLast(a) }

func (l *idleAtoms) putUnused(a int32) {
	if l.named[a] > 0 {
		l.wanted.putLast(a)
		return
	}
	l.spare.putFirst(a)
}

func (l *idleAtoms) of(a int32) *recency {
	if l.named[a] > 0 {
		return &l.wanted
	}
	return &l.spare
}

// name counts one more access (1) or one less (-1) to an atom.
func (l *idleAtoms) name(a, n int32) {
	before := l.named[a]
	l.named[a] += n
	switch {
	case before == 0 && l.spare.has(a):
		l.spare.remove(a)
		l.wanted.putLast(a)
	case l.named[a] == 0 && l.wanted.has(a):
		l.wanted.remove(a)
		l.spare.putLast(a)
	}
}

// first is the atom that leaves first; ok is false when none may.
func (l *idleAtoms) first() (a int32, ok bool) {
	if a, ok = l.spare.first(); ok {
		return a, true
	}
	return l.wanted.last()
}
