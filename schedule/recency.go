package schedule

// recency is a list of numbers below a bound, each at most once, from which the first
// is taken: a ring of links, with the bound itself between the last and the first.
// Everything costs one step.
type recency struct{ next, prev []int32 }

// unlisted stands in next for a number that is not in the list.
const unlisted = -1

func newRecency(bound int) recency {
	l := recency{next: make([]int32, bound+1), prev: make([]int32, bound+1)}
	for i := range bound {
		l.next[i] = unlisted
	}
	l.next[bound], l.prev[bound] = int32(bound), int32(bound)
	return l
}

func (l *recency) end() int32 { return int32(len(l.next) - 1) }

// first is the first of the list; ok is false when it is empty.
func (l *recency) first() (n int32, ok bool) {
	n = l.next[l.end()]
	return n, n != l.end()
}

// last is the last of the list; ok is false when it is empty.
func (l *recency) last() (n int32, ok bool) {
	n = l.prev[l.end()]
	return n, n != l.end()
}

// after is what follows a number of the list; ok is false when it is the last.
func (l *recency) after(n int32) (next int32, ok bool) {
	next = l.next[n]
	return next, next != l.end()
}

// putFirst and putLast add what is not in the list.
func (l *recency) putFirst(n int32) { l.link(l.end(), n, l.next[l.end()]) }
func (l *recency) putLast(n int32)  { l.link(l.prev[l.end()], n, l.end()) }

// has reports whether a number is in the list.
func (l *recency) has(n int32) bool { return l.next[n] != unlisted }

func (l *recency) link(before, n, after int32) {
	if l.has(n) {
		panic("schedule: a number is put twice into a list")
	}
	l.next[before], l.next[n] = n, after
	l.prev[after], l.prev[n] = n, before
}

// remove takes a number out, if it is there.
func (l *recency) remove(n int32) {
	if !l.has(n) {
		return
	}
	l.next[l.prev[n]], l.prev[l.next[n]] = l.next[n], l.prev[n]
	l.next[n] = unlisted
}
