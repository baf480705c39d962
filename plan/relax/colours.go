package relax

import (
	"fmt"
	"slices"
	"strings"

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
	c := &colours{task: make([]int32, len(m.Tasks)), version: make([]int32, len(m.Versions))}
	texts := make([]string, len(m.Tasks))
	for t := range m.Tasks {
		texts[t] = fmt.Sprint(m.Tasks[t].Options)
	}
	number(texts, c.task)
	for known := 0; ; {
		n := c.refineVersions(m) + c.refineTasks(m)
		if n == known {
			break
		}
		known = n
	}
	c.tasks, c.versions = members(c.task), members(c.version)
	return c
}

// refineVersions colours versions by their writers and readers.
func (c *colours) refineVersions(m *certificate.Model) int {
	texts := make([]string, len(m.Versions))
	for i := range m.Versions {
		v := &m.Versions[i]
		writer := int32(-1)
		if v.Writer >= 0 {
			writer = c.task[v.Writer]
		}
		readers := make([]int32, len(v.Readers))
		for k, t := range v.Readers {
			readers[k] = c.task[t]
		}
		slices.Sort(readers)
		texts[i] = fmt.Sprint(writer, v.Home, v.Bytes, readers)
	}
	return number(texts, c.version)
}

// refineTasks colours tasks by their colour, their edges and their versions.
func (c *colours) refineTasks(m *certificate.Model) int {
	about := make([][]string, len(m.Tasks))
	for i := range m.Edges {
		e := &m.Edges[i]
		about[e.From] = append(about[e.From], fmt.Sprint("to ", c.task[e.To], e.Back, e.Nanos))
		about[e.To] = append(about[e.To], fmt.Sprint("from ", c.task[e.From], e.Back, e.Nanos))
	}
	for i := range m.Versions {
		v := &m.Versions[i]
		if v.Writer >= 0 {
			about[v.Writer] = append(about[v.Writer], fmt.Sprint("writes ", c.version[i]))
		}
		for _, t := range v.Readers {
			about[t] = append(about[t], fmt.Sprint("reads ", c.version[i]))
		}
	}
	texts := make([]string, len(m.Tasks))
	for t := range texts {
		slices.Sort(about[t])
		texts[t] = fmt.Sprint(c.task[t], strings.Join(about[t], ";"))
	}
	return number(texts, c.task)
}

// number gives equal texts equal numbers, from 0 in the order in which they come up, and returns how
// many there are.
func number(texts []string, into []int32) int {
	seen := map[string]int32{}
	for i, text := range texts {
		n, ok := seen[text]
		if !ok {
			n = int32(len(seen))
			seen[text] = n
		}
		into[i] = n
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
