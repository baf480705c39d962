package improve

import (
	"slices"
	"time"

	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// All tasks of one call run by one variant on a device. Another variant takes t ns less for them together, or e joules less,
// or both, at the clocks that the plan gives them. A device of n units is then done sooner by t/n ns, if nothing else holds
// it up, and for as long the machine does not wait, with w watts. So what the variant saves at best is
//
//	no time and e joules, or t/n ns and e + w·t/n joules
//
// by whichever counts for more. What it does save only the simulator says: a slower variant holds up nobody where the device
// waits anyway.
//
// A worked example. A call of 60 ns and 1000 nJ has a variant of 100 ns and 900 nJ, on one unit of a machine that draws 5 W
// while everything waits. That saves 100 nJ, minus up to 5·40 = 200 nJ if the step is longer for it. One of 40 ns
// and 1050 nJ saves 5·20 − 50 = 50 nJ, if the step is shorter by all of it.

// vary gives calls of a plan other variants where the simulator says that this is better.
func (s *search) vary(found judged) judged {
	all := s.variants(found)
	if len(all) == 0 {
		return found
	}
	return s.tryHalves(found, all)
}

// saving is the difference of another variant of a call on a device for the tasks of a step.
type saving struct {
	device            platform.DeviceID
	call, variant     string
	nanos, nanojoules float64 // above idle
}

// variants lists variants with possible savings, the largest first.
func (s *search) variants(found judged) (all []change) {
	savings := s.savings(found.Evaluated)
	waits := s.evaluator.rest // watts while nothing runs
	for i := range s.evaluator.devices {
		d := &s.evaluator.devices[i]
		waits += float64(d.count * d.idle[d.AtClock])
	}
	for i := range savings {
		of := &savings[i]
		d := &s.priced.Platform.Devices[of.device]
		sooner, joules := of.nanos/float64(d.Count), of.nanojoules/1e9
		saves := found.score - min(s.score(found.Time, found.Joules-joules),
			s.score(found.Time-time.Duration(sooner), found.Joules-joules-float64(waits*sooner/1e9)))
		if saves <= float64(found.score*tolerance) {
			continue
		}
		at := slices.IndexFunc(all, func(c change) bool { return c.device == d.Name && c.call == of.call })
		if at < 0 {
			at = len(all)
			all = append(all, change{device: d.Name, call: of.call})
		}
		all[at].forms = append(all[at].forms, form{variant: of.variant, saves: saves})
	}
	sortChanges(all)
	return all
}

// savings finds what the other variants of the calls of a plan take less, in the order of its tasks.
func (s *search) savings(e *plan.Evaluated) (all []saving) {
	p, classes := e.Decision.Problem(0, 1, false), s.priced.Costs(0).Class
	byClock, known := map[platform.ClockID][][][]schedule.Cost{}, map[saving]int{}
	for w, list := range e.Plan().Order {
		id := p.Platform.Workers[w].Device
		device := &p.Platform.Devices[id]
		for _, t := range list {
			clock, _ := p.StatesOf(t, id)
			if byClock[clock] == nil {
				byClock[clock] = s.priced.ByVariant(0, clock)
			}
			cost, _ := p.Costs.Of(t, id)
			for _, other := range byClock[clock][classes[t]][id] {
				if other.Variant == cost.Variant || other.Variant == "" {
					continue
				}
				of := saving{device: id, call: schedule.CallName(&s.graph.Tasks[t]), variant: other.Variant}
				at, ok := known[of]
				if !ok {
					at = len(all)
					known[of], all = at, append(all, of)
				}
				is, with := s.evaluator.callOf(device, clock, &cost), s.evaluator.callOf(device, clock, &other)
				all[at].nanos += float64(is.takes - with.takes)
				all[at].nanojoules += float64((is.joules - with.joules) * 1e9)
			}
		}
	}
	return all
}
