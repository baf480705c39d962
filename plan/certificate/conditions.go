package certificate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A relaxation splits what no plan splits. So a bound may be proved part by part: a condition splits all plans
// in two parts, each of which may be split again, and the least of the bounds of all parts bounds all plans.
//
// Conditions are about how many of some tasks run on some devices, which is a whole number in every plan: at
// most n, or at least n + 1. Those about T, the makespan or the distance of steps, are at most x or at least x.
// A plan of a steady step gives a task the same device in every step.
//
// A worked example. Three tasks of 4 ns on two devices of one unit each take at least 12/2 = 6 ns by the work of
// both devices. Split by how many run on the first: if at most 1, the second has two, and takes 8 ns; if at
// least 2, the first takes 8 ns. So no plan takes less than 8 ns.

// Condition is one side of a split.
type Condition struct {
	Tasks   []int32 `json:"tasks,omitempty"`   // ascending; none: it is about T
	Devices []int   `json:"devices,omitempty"` // ascending
	Most    float64 `json:"most"`              // a whole number of the tasks, or nanoseconds
	More    bool    `json:"more,omitempty"`    // the other side: at least Most + 1 tasks, or at least Most nanoseconds
}

// Other is the other side of the split.
func (c Condition) Other() Condition {
	c.More = !c.More
	return c
}

func (c *Condition) equal(other *Condition) bool {
	return c.More == other.More && c.Most == other.Most && slices.Equal(c.Tasks, other.Tasks) && slices.Equal(c.Devices, other.Devices)
}

// Given is the model of those plans that fulfil some more conditions.
func (m *Model) Given(conditions []Condition) (*Model, error) {
	if len(conditions) == 0 {
		return m, nil
	}
	given := *m
	given.Conditions, given.excluded = slices.Concat(m.Conditions, conditions), make([]bool, m.ColumnStart(0))
	copy(given.excluded, m.excluded)
	for i := range conditions {
		if err := given.fulfil(&conditions[i]); err != nil {
			return nil, err
		}
	}
	return &given, nil
}

// fulfil tightens the bounds of columns to plans under a condition.
func (m *Model) fulfil(c *Condition) error {
	switch {
	case !(c.Most >= 0) || math.IsInf(c.Most, 1):
		return fmt.Errorf("a condition with the number %g; want one that is not negative", c.Most)
	case len(c.Tasks) == 0 && len(c.Devices) == 0:
		if c.More {
			m.LeastSpan = max(m.LeastSpan, c.Most)
		} else {
			m.mostSpan = cmp.Or(min(m.mostSpan, c.Most), c.Most)
		}
		return nil
	case !ascending(c.Tasks, len(m.Tasks)) || !ascending(c.Devices, len(m.Devices)) || c.Most != math.Trunc(c.Most):
		return errors.New("a condition whose tasks or devices are not numbers of the model in ascending order, or whose count is no whole number")
	}
	if c.More && int(c.Most)+1 < len(c.Tasks) || !c.More && c.Most > 0 {
		return nil // no single option is excluded
	}
	for _, t := range c.Tasks {
		for k := range m.Tasks[t].Options {
			if slices.Contains(c.Devices, m.Tasks[t].Options[k].Device) != c.More {
				m.excluded[m.ColumnShare(t)+k] = true
			}
		}
	}
	return nil
}

// Within restricts a model to the plans with at most this T; zero means of all.
func (m *Model) Within(deadline time.Duration) *Model {
	m.mostSpan = float64(max(0, deadline))
	return m
}

func ascending[T int | int32](list []T, below int) bool {
	for i, x := range list {
		if x < 0 || int(x) >= below || i > 0 && x <= list[i-1] {
			return false
		}
	}
	return len(list) > 0
}

// addCondition makes the row of a condition on tasks.
func (m *Model) addCondition(f *Form, c *Condition) {
	sign := -1.0
	if f.Least = -c.Most; c.More {
		sign, f.Least = 1, c.Most+1
	}
	for _, t := range c.Tasks {
		for k := range m.Tasks[t].Options {
			if slices.Contains(c.Devices, m.Tasks[t].Options[k].Device) {
				f.add(m.ColumnShare(t)+k, sign)
			}
		}
	}
}

// complete reports whether every plan fulfils all conditions of one of some lists. It holds of a list that is
// empty. It holds of others if all begin with one condition or its other side, and what follows is complete on
// both sides.
func complete(lists [][]Condition) bool {
	if slices.ContainsFunc(lists, func(l []Condition) bool { return len(l) == 0 }) {
		return true
	}
	if len(lists) == 0 {
		return false
	}
	var sides [2][][]Condition
	first, other := lists[0][0], lists[0][0].Other()
	for _, l := range lists {
		switch {
		case l[0].equal(&first):
			sides[0] = append(sides[0], l[1:])
		case l[0].equal(&other):
			sides[1] = append(sides[1], l[1:])
		default:
			return false
		}
	}
	return complete(sides[0]) && complete(sides[1])
}
