package lp

import "math"

// lists holds sparse vectors one after the other. Vector i lies between ends[i-1] and ends[i].
type lists struct {
	ends  []int32
	index []int32
	value []float64
}

func (l *lists) add(index int32, value float64) {
	l.index, l.value = append(l.index, index), append(l.value, value)
}

// end closes the vector whose entries were added last.
func (l *lists) end() { l.ends = append(l.ends, int32(len(l.index))) }

// reset empties the lists and keeps their memory.
func (l *lists) reset() {
	l.index, l.value, l.ends = l.index[:0], l.value[:0], l.ends[:0]
}

// at is vector i.
func (l *lists) at(i int32) ([]int32, []float64) {
	begin := int32(0)
	if i > 0 {
		begin = l.ends[i-1]
	}
	end := l.ends[i]
	return l.index[begin:end], l.value[begin:end:end]
}

// sorted fills the lists with entries (keys[i], index[i], value[i]), of which the keys name
// the vector. Within a vector entries keep their order.
func (l *lists) sorted(vectors int, keys, index []int32, value []float64) {
	l.ends = resize(l.ends, vectors)
	l.index, l.value = resize(l.index, len(index)), resize(l.value, len(index))
	clear(l.ends)
	for _, k := range keys {
		l.ends[k]++
	}
	next := int32(0)
	for k, count := range l.ends {
		l.ends[k] = next // where the vector's next entry goes
		next += count
	}
	for i, k := range keys {
		at := l.ends[k]
		l.index[at], l.value[at] = index[i], value[i]
		l.ends[k]++
	}
}

// resize is a slice of a length, with what it held before and any rest.
func resize[T any](s []T, length int) []T {
	if length <= cap(s) {
		return s[:length]
	}
	return append(s[:cap(s)], make([]T, length-cap(s))...)
}

// tiny bounds the residue of a cancellation.
const tiny = 1e-14

// vector is dense, with a list of the entries that are not zero.
type vector struct {
	value []float64
	index []int32
}

// empty is the vector of zeros of a length.
func (v *vector) empty(length int) {
	if len(v.value) != length {
		v.value = make([]float64, length)
		v.index = v.index[:0]
		return
	}
	for _, i := range v.index {
		v.value[i] = 0
	}
	v.index = v.index[:0]
}

// gather lists the entries of the dense part, without residues.
func (v *vector) gather() {
	v.index = v.index[:0]
	for i, x := range v.value {
		if x == 0 {
			continue
		}
		if math.Abs(x) < tiny {
			v.value[i] = 0
			continue
		}
		v.index = append(v.index, int32(i))
	}
}
