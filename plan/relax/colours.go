package relax

import (
	"encoding/binary"
	"math"
	"slices"

	"dahl/plan/certificate"
)

// colours are classes of tasks and of versions that no row can tell apart. Colour refinement splits
// classes until all tasks of one have the same options and the same numbers of edges of each kind to and
// from each class, and alike for versions. The rows of the classes then have an optimum in which all of
// a class are equal, since the mean over a class of any solution is one [Grohe, Kersting, Mladenov,
// Selman, ESA 2014]. So a class needs one column for all.
type colours struct {
	task, version []int32
	tasks         [][]int32 // by colour
	versions      [][]int32
}

func refine(m *certificate.Model) *colours {
	c := byOptions(m)
	nanos := make([]int32, len(m.Edges)) // by edge: a number that those with equal times share
	var k keys
	for i := range m.Edges {
		for _, n := range m.Edges[i].Nanos {
			k.add(uint64(n))
		}
		k.end()
	}
	k.number(nanos)
	for known := 0; ; {
		n := c.refineVersions(m) + c.refineTasks(m, nanos)
		if n == known {
			break
		}
		known = n
	}
	c.tasks, c.versions = members(c.task), members(c.version)
	return c
}

// byOptions colours tasks by their options and the model's conditions on them, and gives all versions one colour.
func byOptions(m *certificate.Model) *colours {
	c := &colours{task: make([]int32, len(m.Tasks)), version: make([]int32, len(m.Versions))}
	var k keys
	for t := range m.Tasks {
		for _, o := range m.Tasks[t].Options {
			k.add(uint64(o.Device), uint64(o.Clock), uint64(o.Nanos), uint64(o.AwakeNanos), math.Float64bits(o.Nanojoules))
		}
		for i := range m.Conditions {
			if _, is := slices.BinarySearch(m.Conditions[i].Tasks, int32(t)); is {
				k.add(uint64(i))
			}
		}
		k.end()
	}
	k.number(c.task)
	c.tasks, c.versions = members(c.task), members(c.version)
	return c
}

// refineVersions colours versions by their writers and readers.
func (c *colours) refineVersions(m *certificate.Model) int {
	var k keys
	for i := range m.Versions {
		v := &m.Versions[i]
		writer := uint64(math.MaxUint64)
		if v.Writer >= 0 {
			writer = uint64(c.task[v.Writer])
		}
		readers := make([]uint64, len(v.Readers))
		for i, t := range v.Readers {
			if readers[i] = uint64(c.task[t]); t == v.Writer {
				readers[i] = math.MaxUint64 // it needs no copy
			}
		}
		slices.Sort(readers)
		k.add(writer, uint64(v.Home), uint64(v.Bytes), uint64(v.Leads))
		k.add(readers...)
		k.end()
	}
	return k.number(c.version)
}

// refineTasks colours tasks by their colour, their edges and their versions.
func (c *colours) refineTasks(m *certificate.Model, nanos []int32) int {
	about := make([][]uint64, len(m.Tasks))
	note := func(t int32, kind, colour, more int32) {
		about[t] = append(about[t], uint64(kind)<<60|uint64(colour)<<30|uint64(more))
	}
	for i := range m.Edges {
		e := &m.Edges[i]
		note(e.From, e.Back, c.task[e.To], nanos[i])
		note(e.To, 2+e.Back, c.task[e.From], nanos[i])
	}
	for i := range m.Versions {
		v := &m.Versions[i]
		if v.Writer >= 0 {
			note(v.Writer, 4, c.version[i], 0)
		}
		for _, t := range v.Readers {
			note(t, 5, c.version[i], 0)
		}
	}
	var k keys
	for t := range m.Tasks {
		slices.Sort(about[t])
		k.add(uint64(c.task[t]))
		k.add(about[t]...)
		k.end()
	}
	return k.number(c.task)
}

// keys are lists of numbers, of which equal ones get equal numbers.
type keys struct {
	text []byte
	ends []int
}

func (k *keys) add(numbers ...uint64) {
	for _, n := range numbers {
		k.text = binary.LittleEndian.AppendUint64(k.text, n)
	}
}

func (k *keys) end() { k.ends = append(k.ends, len(k.text)) }

// number numbers the lists from 0 in the order in which they come up, and returns how many differ.
func (k *keys) number(into []int32) int {
	seen := map[string]int32{}
	begin := 0
	for i, end := range k.ends {
		n, ok := seen[string(k.text[begin:end])]
		if !ok {
			n = int32(len(seen))
			seen[string(k.text[begin:end])] = n
		}
		into[i], begin = n, end
	}
	return len(seen)
}

func members(colour []int32) [][]int32 {
	var list [][]int32
	for i, c := range colour {
		for int(c) >= len(list) {
			list = append(list, nil)
		}
		list[c] = append(list[c], int32(i))
	}
	return list
}
