package schedule

import (
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// A measured core that sleeps after 10 ns, enters in 4 and leaves in 6: from 20 to 100 it was idle,
// so it fell asleep at 30 and left at 94. From 120 to 138 it could not have been back in time: 130
// + 4 + 6 = 140. From 150 to the end at 200 (another core works) it sleeps from 160 on.
func TestModelStates(t *testing.T) {
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2, PowerSource: platform.Guess,
		Sleeps: []platform.SleepState{{Name: "c6", After: 10, Enter: platform.Transition{Takes: 4}, Leave: platform.Transition{Takes: 6}}}}}}
	must.Do(t, p.Complete())
	span := func(w platform.WorkerID, start, end time.Duration) Span {
		return Span{Worker: w, Start: start, End: end}
	}
	s := &Schedule{World: Measured, Makespan: 200, Spans: []Span{span(0, 0, 20), span(1, 0, 200), span(0, 100, 120), span(0, 138, 150)}}
	s.ModelStates(&Problem{Platform: p, Graph: &dag.Graph{}})
	want := []Change{{FallAsleep, 0, 0, -1, 0, 30, 34}, {WakeUp, 0, 0, -1, 0, 94, 100}, {FallAsleep, 0, 0, -1, 0, 160, 164}}
	if len(s.Changes) != len(want) {
		t.Fatalf("got %+v, want %+v", s.Changes, want)
	}
	for i, c := range s.Changes {
		if c != want[i] {
			t.Errorf("change %d: got %+v, want %+v", i, c, want[i])
		}
	}
}

// What nobody sees asleep is what is not emulated, links, and units of any device that were not selected, each once.
func TestSleepModelled(t *testing.T) {
	naps := []platform.SleepState{{Name: "nap", After: 10}}
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{
		{Name: "cpu", Kind: "cpu", Count: 2, PowerSource: platform.Guess, Sleeps: naps},
		{Name: "e0", Kind: "emulated", Count: 1, PowerSource: platform.Guess, Sleeps: naps}, {Name: "e1", Kind: "emulated", Count: 1, PowerSource: platform.Guess, Sleeps: naps}}}
	must.Do(t, p.Complete())
	q := must.Get(p.Select("cpu:1,e0"))(t)
	for _, c := range []struct {
		p    *platform.Platform
		want []string
	}{{p, []string{"cpu"}}, {q, []string{"cpu", "e1"}}} {
		if got := (&Problem{Platform: c.p}).SleepModelled(); !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}
