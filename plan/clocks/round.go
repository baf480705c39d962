package clocks

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// rounding is clocks that keep a period.
type rounding struct {
	*timing
	kept   [][]Option // by task
	choice []int      // by task: of those kept
	joules float64    // above idle units'
	random *rand.Rand // lets chance order what gets slower; nil means it does not
}

// none stands for no task.
const none = -1

// put gives a task another option. It reports whether the period allows that.
func (r *rounding) put(t int32, option int) bool {
	if !r.set(t, r.kept[t][option].Nanos) {
		return false
	}
	r.joules += r.kept[t][option].Joules - r.kept[t][r.choice[t]].Joules
	r.choice[t] = option
	return true
}

// begin takes options near the times of a point, and faster ones as far as the period asks for them. Up says how far above that time an
// option may be, in parts of the distance to the next faster one. It reports whether there are such options.
func (r *rounding) begin(x *point, up float64, period int64) bool {
	r.joules = 0
	for t, of := range r.kept {
		most := float64(of[0].Nanos) + x.longer[t] + 1e-9*float64(of[0].Nanos) + 0.5
		o := len(of) - 1
		for o > 0 && float64(of[o].Nanos)-up*float64(of[o].Nanos-of[o-1].Nanos) > most {
			o--
		}
		r.choice[t], r.takes[t] = o, of[o].Nanos
		r.joules += of[o].Joules
	}
	return r.hurry(period)
}

// step is to give a task its next slower option.
type step struct {
	task  int32
	slope float64 // joules for each nanosecond
}

// slower lists next slower options with room for them, the largest saving for each nanosecond first. One task is left out.
func (r *rounding) slower(but int32) (all []step) {
	room := r.room()
	for t, o := range r.choice {
		of := r.kept[t]
		if o+1 < len(of) && of[o+1].Nanos-of[o].Nanos <= room[t] && int32(t) != but {
			all = append(all, step{int32(t), r.chance(slope(of[o], of[o+1]))})
		}
	}
	slices.SortFunc(all, func(a, b step) int { return cmp.Or(cmp.Compare(a.slope, b.slope), cmp.Compare(a.task, b.task)) })
	return all
}

// reclaim gives tasks but one slower options until the period allows none.
func (r *rounding) reclaim(but int32) {
	for again := true; again; {
		again = false
		for _, s := range r.slower(but) {
			again = r.put(s.task, r.choice[s.task]+1) || again
		}
	}
}

// chance changes a slope at random.
func (r *rounding) chance(slope float64) float64 {
	const noise = 2
	if r.random == nil {
		return slope
	}
	return slope * (1 + noise*r.random.Float64())
}

// copy takes over the options of another rounding of the graph, and when tasks start.
func (r *rounding) copy(of *rounding) {
	r.choice, r.takes, r.start = append(r.choice[:0], of.choice...), append(r.takes[:0], of.takes...), append(r.start[:0], of.start...)
	r.joules, r.period = of.joules, of.period
}

// hurry gives tasks faster options until the period allows all of them: on waits that take too long the option with the least joules
// for each nanosecond. It reports whether there are such options.
func (r *rounding) hurry(period int64) bool {
	r.period = period
	for {
		task, late := r.relax()
		if !late {
			return true
		}
		best, least := int32(-1), math.Inf(1)
		for t, again := task, true; again; again = t != task {
			w := &r.Waits[r.cause[t]]
			t = w.From
			if o := r.choice[t]; o > 0 {
				if costs := -slope(r.kept[t][o-1], r.kept[t][o]); costs < least {
					best, least = t, costs
				}
			}
		}
		if best < 0 {
			return false
		}
		r.put(best, r.choice[best]-1)
	}
}
