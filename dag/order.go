package dag

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// orderByName returns the tasks in the order of their names.
//
// It compares eight bytes at a time. Names that agree in their first depth bytes form a group.
// The group is sorted, as numbers, by the eight bytes behind everything that its names have in
// common. Each set of equal numbers is a new group. Task names share long beginnings, so
// comparing them as strings would read these over and over.
func orderByName(tasks []Task) []TaskID {
	o := nameOrder{tasks: tasks, keys: make([]nameKey, len(tasks))}
	for i := range o.keys {
		o.keys[i].task = TaskID(i)
	}
	o.sort(o.keys, 0)
	order := make([]TaskID, len(tasks))
	for i, k := range o.keys {
		order[i] = k.task
	}
	return order
}

type nameOrder struct {
	tasks   []Task
	keys    []nameKey
	scratch []nameKey // of radixSort
}

// nameKey is eight bytes of a task's name, the first one highest.
type nameKey struct {
	word uint64
	task TaskID
}

// sort orders names that agree in their first depth bytes.
func (o *nameOrder) sort(keys []nameKey, depth int) {
	if len(keys) < 2 {
		return
	}
	depth = o.common(keys, depth)
	const wordBytes = 8
	for i := range keys {
		keys[i].word = wordAt(o.tasks[keys[i].task].Name, depth)
	}
	o.sortWords(keys)
	for first := 0; first < len(keys); {
		end, short := first, false // short: a name has ended, and zeros stand for the rest
		for ; end < len(keys) && keys[end].word == keys[first].word; end++ {
			short = short || len(o.tasks[keys[end].task].Name) < depth+wordBytes
		}
		if group := keys[first:end]; short && len(group) > 1 { // names with zeros in them
			slices.SortFunc(group, func(a, b nameKey) int {
				return strings.Compare(o.tasks[a.task].Name, o.tasks[b.task].Name)
			})
		} else {
			o.sort(group, depth+wordBytes)
		}
		first = end
	}
}

// common is the length of the longest common beginning of all names; they agree in depth bytes.
func (o *nameOrder) common(keys []nameKey, depth int) int {
	one := o.tasks[keys[0].task].Name
	length := len(one)
	for _, k := range keys[1:] {
		other := o.tasks[k.task].Name
		length = min(length, len(other))
		at := depth
		for at < length && one[at] == other[at] {
			at++
		}
		if length = at; length == depth {
			break
		}
	}
	return length
}

// wordAt is eight bytes of a name from position at, with zeros behind its end.
func wordAt(name string, at int) uint64 {
	if at+8 <= len(name) {
		return binary.BigEndian.Uint64([]byte(name[at : at+8]))
	}
	word := uint64(0)
	for i := at; i < len(name); i++ {
		word |= uint64(name[i]) << (56 - 8*(i-at))
	}
	return word
}

// sortWords orders keys by their words.
func (o *nameOrder) sortWords(keys []nameKey) {
	const worthRadix = 256 // as many as a pass has counters
	if len(keys) < worthRadix {
		slices.SortFunc(keys, func(a, b nameKey) int { return cmp.Compare(a.word, b.word) })
		return
	}
	if o.scratch == nil {
		o.scratch = make([]nameKey, len(o.keys))
	}
	differ := uint64(0)
	for _, k := range keys {
		differ |= k.word ^ keys[0].word
	}
	from, to := keys, o.scratch[:len(keys)]
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xFF == 0 {
			continue
		}
		var next [256]int32
		for _, k := range from {
			next[k.word>>shift&0xFF]++
		}
		at := int32(0)
		for digit, n := range next {
			next[digit] = at
			at += n
		}
		for _, k := range from {
			digit := k.word >> shift & 0xFF
			to[next[digit]] = k
			next[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &keys[0] {
		copy(keys, from)
	}
}
