package simulate

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// anyOrder is an Engine whose tasks and copies end in a random order, as on devices that
// take any time for anything; only the tasks of a worker end one after the other. Copies
// between some memories hardly ever end while anything else goes on.
type anyOrder struct {
	engine *schedule.Engine
	tasks  []int // by worker: commanded and not ended
	copies []schedule.CopyID
	slow   [][2]platform.MemoryID
}

var errStands = errors.New("nothing runs and nothing moves, and there are tasks left")

// run goes on until all tasks have ended.
func (o *anyOrder) run(r *rand.Rand) error {
	for o.obey(o.engine.Start(nil)); !o.engine.Finished() && o.engine.Err() == nil; {
		var busy []platform.WorkerID
		for w, n := range o.tasks {
			if n > 0 {
				busy = append(busy, platform.WorkerID(w))
			}
		}
		if len(busy)+len(o.copies) == 0 {
			return errStands
		}
		k := r.IntN(len(busy) + len(o.copies))
		if k < len(busy) {
			o.tasks[busy[k]]--
			o.obey(o.engine.Done(busy[k], nil))
			continue
		}
		c := o.copies[k-len(busy)]
		if t := o.engine.CopyAt(c); slices.Contains(o.slow, [2]platform.MemoryID{t.From, t.To}) && r.IntN(20) > 0 {
			continue
		}
		o.copies = slices.Delete(o.copies, k-len(busy), k-len(busy)+1)
		o.obey(o.engine.Copied(c, nil))
	}
	return o.engine.Err()
}

func (o *anyOrder) obey(cmds []schedule.Command) {
	for _, c := range cmds {
		switch c.Kind {
		case schedule.RunTask:
			o.tasks[c.Worker]++
		case schedule.CopyRegion:
			o.copies = append(o.copies, c.Copy)
		}
	}
}

// TestEveryOrderOfEnds: in memories that hold hardly more than the largest task, or so little
// that storages share bytes, every policy comes to the end of random runs in whatever order
// tasks and copies end, not only in that of their durations.
func TestEveryOrderOfEnds(t *testing.T) {
	runs := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 23))
		p, ok := tightTriangle(t, r)
		if !ok {
			continue
		}
		for range 5 {
			for _, name := range []string{"eager", "dmda", "dmdar", "thief"} {
				var policy schedule.Policy = &thief{}
				if name != "thief" {
					policy = dynamic(t, p, name)
				}
				now := time.Duration(0)
				e, err := schedule.NewEngine(p, policy, func() time.Duration { now++; return now })
				if err == nil {
					o := &anyOrder{engine: e, tasks: make([]int, len(p.Platform.Workers))}
					for range r.IntN(3) {
						o.slow = append(o.slow, [2]platform.MemoryID{platform.MemoryID(1 + r.IntN(2)), 0})
					}
					err = o.run(r)
					runs++
				}
				if err != nil && !strings.Contains(err.Error(), "has no place") { // a task can run in that memory only
					t.Fatalf("seed %d, %s: %v", seed, name, err)
				}
			}
		}
	}
	if runs < 5000 {
		t.Errorf("only %d runs", runs)
	}
}

// tightTriangle is a random problem on three workers, each with a memory of its own from which
// a route leads to each of the others; false: what is at home there does not fit.
func tightTriangle(t *testing.T, r *rand.Rand) (*schedule.Problem, bool) {
	pl := randomPlatform(t, r)
	if len(pl.Memories) < 3 {
		return nil, false
	}
	pl.Links = append(pl.Links, platform.Link{Name: "third", BandwidthBytesPerSec: 1e9, PowerSource: platform.Guess})
	pl.Routes = append(pl.Routes, platform.Route{From: 0, To: 2, Links: []platform.LinkID{platform.LinkID(len(pl.Links) - 1)}})
	for d := range pl.Devices {
		pl.Devices[d].Count, pl.Devices[d].CopyEnginesIn, pl.Devices[d].CopyEnginesOut = 1, 1, 1
	}
	complete(t, pl)
	tasks := randomGraph(r, pl)
	p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+r.IntN(12))
	if r.IntN(2) == 0 {
		return p, sharePlaces(p, r)
	}
	squeeze(p, r)
	return p, true
}
