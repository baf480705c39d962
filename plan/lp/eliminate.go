package lp

import (
	"math"
	"slices"
)

// threshold is the least size of a pivot relative to the largest entry of its column: multipliers
// are at most its inverse, which bounds how errors grow.
const threshold = 0.1

// singular is the size of a column that depends on those eliminated before.
const singular = 1e-10

// searches is how many rows and columns are looked at for a pivot of least fill-in (Suhl).
const searches = 4

// eliminator is the part of a basis that is not factored yet. Columns are called slots, from
// 0 to the number of columns that are no row's own logical.
type eliminator struct {
	index   [][]int32   // rows by slot
	value   [][]float64 // parallel to index
	slots   [][]int32   // slots by row
	columns byCount     // slots by number of entries
	rows    byCount     // rows by number of entries
	place   []int32     // by row: where it stands in the column that is being updated, plus 1
}

func (e *eliminator) reset(rows int) {
	e.index, e.value = e.index[:0], e.value[:0]
	e.slots, e.place = resize(e.slots, rows), resize(e.place, rows)
	for i := range e.slots {
		e.slots[i], e.place[i] = e.slots[i][:0], 0
	}
}

// addSlot begins a column without entries, in memory of an earlier one.
func (e *eliminator) addSlot() int32 {
	slot := len(e.index)
	e.index, e.value = resize(e.index, slot+1), resize(e.value, slot+1)
	e.index[slot], e.value[slot] = e.index[slot][:0], e.value[slot][:0]
	return int32(slot)
}

func (e *eliminator) add(slot, row int32, value float64) {
	e.index[slot], e.value[slot] = append(e.index[slot], row), append(e.value[slot], value)
	e.slots[row] = append(e.slots[row], slot)
}

// count sorts rows and columns by their numbers of entries.
func (e *eliminator) count() {
	e.columns.reset(len(e.index), len(e.slots))
	for slot := range e.index {
		e.columns.insert(int32(slot), len(e.index[slot]))
	}
	e.rows.reset(len(e.slots), len(e.index))
	for row := range e.slots {
		e.rows.insert(int32(row), len(e.slots[row]))
	}
}

// remove takes entry k out of a column, the last one into its place, and returns it.
func (e *eliminator) remove(slot int32, k int) float64 {
	index, value := e.index[slot], e.value[slot]
	x, last := value[k], len(index)-1
	index[k], value[k] = index[last], value[last]
	e.index[slot], e.value[slot] = index[:last], value[:last]
	return x
}

// forget takes a column off a row's list.
func (e *eliminator) forget(row, slot int32) {
	slots := e.slots[row]
	slots[slices.Index(slots, slot)] = slots[len(slots)-1]
	e.slots[row] = slots[:len(slots)-1]
	e.rows.move(row, len(slots)-1)
}

// pivot is the best of the pivots seen. Its merit is a bound of the fill-in (Markowitz).
type pivot struct {
	row, slot int32
	merit     int
	size      float64
}

func (p *pivot) offer(row, slot int32, merit int, size float64) {
	if merit < p.merit || merit == p.merit && size > p.size {
		*p = pivot{row, slot, merit, size}
	}
}

// choose finds a pivot, or none where all columns that are left depend on others.
func (e *eliminator) choose() (best pivot, ok bool) {
	best.merit = math.MaxInt
	tried := 0
	for n := 1; n < len(e.columns.first) || n < len(e.rows.first); n++ {
		for slot := e.columns.start(n); slot >= 0; {
			next := e.columns.next[slot]
			if e.offerColumn(slot, &best) {
				if tried++; best.merit <= (n-1)*(n-1) || tried >= searches {
					return best, true
				}
			}
			slot = next
		}
		for row := e.rows.start(n); row >= 0; row = e.rows.next[row] {
			for _, slot := range e.slots[row] {
				size, least := e.entry(slot, row)
				if size >= least {
					best.offer(row, slot, (n-1)*(len(e.index[slot])-1), size)
				}
			}
			if tried++; best.merit <= (n-1)*n || tried >= searches && best.merit < math.MaxInt {
				return best, true
			}
		}
	}
	return best, best.merit < math.MaxInt
}

// offerColumn offers the entries of a column, or takes one that has none out of the search.
func (e *eliminator) offerColumn(slot int32, best *pivot) bool {
	largest := 0.0
	for _, x := range e.value[slot] {
		largest = max(largest, math.Abs(x))
	}
	if !(largest >= singular) {
		e.columns.remove(slot)
		return false
	}
	for k, row := range e.index[slot] {
		if size := math.Abs(e.value[slot][k]); size >= threshold*largest {
			best.offer(row, slot, (len(e.slots[row])-1)*(len(e.index[slot])-1), size)
		}
	}
	return true
}

// entry is the size of an entry, and the least that a pivot in its column has.
func (e *eliminator) entry(slot, row int32) (size, least float64) {
	largest := singular / threshold
	for k, x := range e.value[slot] {
		largest = max(largest, math.Abs(x))
		if e.index[slot][k] == row {
			size = math.Abs(x)
		}
	}
	return size, threshold * largest
}

// eliminate makes an entry the next pivot: its row goes to U, the rest of its column over the
// pivot to L, and what is left loses the product of both.
func (e *eliminator) eliminate(row, slot int32, f *factor) {
	e.columns.remove(slot)
	e.rows.remove(row)
	at := e.remove(slot, slices.Index(e.index[slot], row))
	f.diagonal[row] = at
	f.order = append(f.order, row)
	f.rowOf[slot] = row
	begin := len(f.low.index)
	for k, i := range e.index[slot] {
		f.low.add(i, e.value[slot][k]/at)
		e.forget(i, slot)
	}
	multipliers, factors := f.low.index[begin:], f.low.value[begin:]
	if len(multipliers) > 0 {
		f.lowRows = append(f.lowRows, row)
		f.low.end()
	}
	for _, other := range e.slots[row] {
		if other == slot {
			continue
		}
		x := e.remove(other, slices.Index(e.index[other], row))
		f.addUpper(row, other, x)
		e.subtract(other, x, multipliers, factors)
		e.columns.move(other, len(e.index[other]))
	}
}

// subtract takes x times a column of L off a column.
func (e *eliminator) subtract(slot int32, x float64, rows []int32, factors []float64) {
	if len(rows) == 0 {
		return
	}
	for k, i := range e.index[slot] {
		e.place[i] = int32(k) + 1
	}
	fill := len(e.index[slot])
	for k, i := range rows {
		if at := e.place[i]; at > 0 {
			e.value[slot][at-1] -= float64(x * factors[k])
			continue
		}
		e.add(slot, i, -x*factors[k])
		e.rows.move(i, len(e.slots[i]))
	}
	for _, i := range e.index[slot] {
		e.place[i] = 0
	}
	for k := fill - 1; k >= 0; k-- {
		if row := e.index[slot][k]; math.Abs(e.value[slot][k]) < tiny {
			e.remove(slot, k)
			e.forget(row, slot)
		}
	}
}

// byCount holds members in doubly linked lists, one for each number of entries.
type byCount struct {
	first      []int32 // by number of entries, -1 means none
	next, prev []int32 // by member
	count      []int32 // by member, -1 means in no list
}

func (b *byCount) reset(members, most int) {
	b.first = resize(b.first, most+1)
	for n := range b.first {
		b.first[n] = -1
	}
	b.next, b.prev, b.count = resize(b.next, members), resize(b.prev, members), resize(b.count, members)
}

// start is the first member of a number of entries, -1 if there is none.
func (b *byCount) start(n int) int32 {
	if n >= len(b.first) {
		return -1
	}
	return b.first[n]
}

func (b *byCount) insert(member int32, n int) {
	b.count[member], b.prev[member], b.next[member] = int32(n), -1, b.first[n]
	if b.first[n] >= 0 {
		b.prev[b.first[n]] = member
	}
	b.first[n] = member
}

// remove takes a member out for good; move leaves it out.
func (b *byCount) remove(member int32) {
	prev, next := b.prev[member], b.next[member]
	if prev >= 0 {
		b.next[prev] = next
	} else {
		b.first[b.count[member]] = next
	}
	if next >= 0 {
		b.prev[next] = prev
	}
	b.count[member] = -1
}

func (b *byCount) move(member int32, n int) {
	if b.count[member] < 0 {
		return
	}
	b.remove(member)
	b.insert(member, n)
}
