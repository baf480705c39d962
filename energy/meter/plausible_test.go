package meter

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dahl/must"
)

// tree is a meter whose counters are functions of the time since it was made.
type tree struct {
	begin    time.Time
	counters []Counter
	shows    []func(ms int64) (uint64, error)
}

func (m *tree) Name(counters int) string { return fmt.Sprintf("tree (%d)", counters) }
func (m *tree) Counters() []Counter      { return m.counters }
func (m *tree) Update() time.Duration    { return time.Millisecond }
func (m *tree) Close() error             { return nil }
func (m *tree) Read(uj []uint64) (err error) {
	for i, shows := range m.shows {
		if uj[i], err = shows(time.Since(m.begin).Milliseconds()); err != nil {
			return err
		}
	}
	return nil
}

// aRange is that of most packages, in microjoules.
const aRange = 262143328850

// draws counts watts from a number on, and wraps at the range.
func draws(from uint64, watts uint64) func(int64) (uint64, error) {
	return func(ms int64) (uint64, error) { return (from + 1000*watts*uint64(ms)) % aRange, nil }
}

// from is one function up to a time and another one then.
func from(at int64, before, then func(int64) (uint64, error)) func(int64) (uint64, error) {
	return func(ms int64) (uint64, error) {
		if ms < at {
			return before(ms)
		}
		return then(ms)
	}
}

func shows(uj uint64) func(int64) (uint64, error) {
	return func(int64) (uint64, error) { return uj, nil }
}

// TestMeterTrees reads trees every 100 ms for 2.5 s, in which a package draws 40 W: 100 J. The designed power
// is 50 W, so that 150 W are believed.
func TestMeterTrees(t *testing.T) {
	gone := errors.New("gone")
	plain := draws(1e6, 40)
	for _, c := range []struct {
		name   string
		shows  []func(int64) (uint64, error)
		joules float64 // NaN: they are not measured
		states []string
	}{
		{"one package", []func(int64) (uint64, error){plain}, 100, []string{"p0 of x measured"}},
		{"two packages", []func(int64) (uint64, error){plain, draws(5e6, 20)}, 150, []string{"p0 of x measured", "p1 of x measured"}},
		{"mirrored", []func(int64) (uint64, error){plain, plain}, 100,
			[]string{"p0 of x measured", "p1 of x merged: it shows the same as p0, so that the two are one and count once"}},
		// The mirror lags by 7 ms in three of four readings, as where it is written after the other.
		{"mirrored, read between two updates", []func(int64) (uint64, error){plain, func(ms int64) (uint64, error) {
			if ms/100%4 != 0 {
				ms -= 7
			}
			return plain(max(0, ms))
		}}, 100, []string{"p0 of x measured", "p1 of x merged: it shows the same as p0, so that the two are one and count once"}},
		// Two that start at the same number, and two that meet once: 40 and 20 W, 40 and 80 W.
		{"equal at first", []func(int64) (uint64, error){plain, draws(1e6, 20)}, 150, []string{"p0 of x measured", "p1 of x measured"}},
		{"equal in passing", []func(int64) (uint64, error){draws(40e6, 40), draws(0, 80)}, 300, []string{"p0 of x measured", "p1 of x measured"}},
		// 1 J below the range: it wraps after 25 ms.
		{"a wrap", []func(int64) (uint64, error){draws(aRange-1e6, 40)}, 100, []string{"p0 of x measured"}},
		// At 1.05 s it starts again from 0: of the reading at 1.1 s nobody knows what it counted.
		{"a reset", []func(int64) (uint64, error){from(1050, draws(200e9, 40), draws(0, 40))}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 100ms of 2.5s is not known; after 1s it fell from 200040 J to 44 J, and a wrap at its range of 262143 J would be 62147.3 J in 100ms, more than 3 times 50 W (said)"}},
		// It falls by 4.001 J and rises again by 4 J in the 0.1 s.
		{"a fall by 1 mJ", []func(int64) (uint64, error){from(1050, draws(200e9, 40), draws(200e9-4.001e6, 40))}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 100ms of 2.5s is not known; after 1s it fell from 200040 J to 200040 J, and a wrap at its range of 262143 J would be 262143 J in 100ms, more than 3 times 50 W (said)"}},
		// 200 W are more than 150; the first 0.1 s of them, and what 0.1 s more hold back, may have been shown late.
		{"too many watts", []func(int64) (uint64, error){from(1000, plain, func(ms int64) (uint64, error) { v, _ := plain(1000); return v + 200_000*uint64(ms-1000), nil })}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 1.2s of 2.5s is not known; after 1.3s it rose by 20 J in 100ms, more than 3 times 50 W (said)"}},
		{"a jump", []func(int64) (uint64, error){from(1000, plain, draws(60e6, 40))}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 100ms of 2.5s is not known; after 900ms it rose by 63 J in 100ms, more than 3 times 50 W (said)"}},
		{"stuck at zero", []func(int64) (uint64, error){shows(0)}, math.NaN(), []string{"p0 of x stuck: it shows 0 J and has not moved in 2.5s"}},
		{"stuck elsewhere", []func(int64) (uint64, error){shows(123456789)}, math.NaN(), []string{"p0 of x stuck: it shows 123.457 J and has not moved in 2.5s"}},
		{"one of two stuck", []func(int64) (uint64, error){plain, shows(0)}, math.NaN(), []string{"p0 of x measured", "p1 of x stuck: it shows 0 J and has not moved in 2.5s"}},
		// It last moved at 0.5 s, and stood still for the last 2 s.
		{"stands still", []func(int64) (uint64, error){func(ms int64) (uint64, error) { return plain(min(ms, 500)) }}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 2s of 2.5s is not known; after 500ms it did not move"}},
		// 0.9 s without a move are not a second; the 36 J are then shown at once, which is more than 150 W in 0.2 s.
		{"late", []func(int64) (uint64, error){func(ms int64) (uint64, error) { return plain(ms / 900 * 900) }}, math.NaN(),
			[]string{"p0 of x unknown: what it counted in 200ms of 2.5s is not known; after 800ms it rose by 36 J in 100ms, more than 3 times 50 W (said)"}},
		{"removed", []func(int64) (uint64, error){from(1000, plain, func(int64) (uint64, error) { return 0, gone })}, math.NaN(),
			[]string{"p0 of x failed: sample the meter tree (1): gone"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &tree{begin: time.Now(), shows: c.shows}
			for i := range c.shows {
				m.counters = append(m.counters, Counter{Name: fmt.Sprint("p", i), RangeUj: aRange, TDPWatts: 50, TDPFrom: "said"})
			}
			r := Record([]Metered{{Of: "x", Meter: m}})
			time.Sleep(2500 * time.Millisecond)
			readings, err := r.Stop()
			if (err != nil) != (c.name == "removed") {
				t.Errorf("%s: %v", c.name, err)
			}
			if joules, none := c.joules, math.IsNaN(c.joules); none != (len(readings) == 0) || !none && !near(readings[0].Joules, joules) {
				t.Errorf("%s: readings %+v, want %g J", c.name, readings, joules)
			}
			var states []string
			for _, s := range r.MeterStates() {
				states = append(states, s.String())
			}
			if got, want := strings.Join(states, "\n"), strings.Join(c.states, "\n"); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", c.name, got, want)
			}
		})
	}
}

// TestTwinBoards: two boards that show one counter are one, whose joules count for the first of them. Integrals of
// watts that are equal say nothing, since all start from 0.
func TestTwinBoards(t *testing.T) {
	for integral, want := range map[bool]string{false: "gpu0 4 J", true: "gpu0 4 J, gpu1 4 J"} {
		synctest.Test(t, func(t *testing.T) {
			board := func(name string) Metered {
				return Metered{Of: name, Meter: &tree{time.Now(), []Counter{{Name: "NVML", TDPWatts: 700, Integral: integral}}, []func(int64) (uint64, error){draws(0, 4)}}}
			}
			r := Record([]Metered{board("gpu0"), board("gpu1")})
			time.Sleep(time.Second)
			readings := must.Get(r.Stop())(t)
			var got []string
			for _, of := range readings {
				got = append(got, fmt.Sprintf("%s %g J", of.Of, of.Joules))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("integral %v: %v, want %s", integral, got, want)
			}
			if s := r.MeterStates()[1]; (s.Status == Merged) == integral {
				t.Errorf("integral %v: %+v", integral, s)
			}
		})
	}
}

// TestLook ends when the counters have shown several values, which takes 40 ms at 5 ms each, and otherwise after a second.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		shows func(int64) (uint64, error)
		took  time.Duration
		want  Status
	}{{draws(7, 10), 35 * time.Millisecond, Counts}, {shows(7), time.Second, Stuck}} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			m := &tree{begin, []Counter{{Name: "p0", TDPWatts: 100}}, []func(int64) (uint64, error){c.shows}}
			states := Look([]Metered{{Of: "x", Meter: m}})
			if took := time.Since(begin); took < c.took || took > c.took+2*lookInterval || states[0].Status != c.want {
				t.Errorf("%v in %v, want %s in %v", states, took, c.want, c.took)
			}
		})
	}
}

// TestTallyGivesBackTheJoules: a device draws up to three times its designed power, in readings up to a second apart. Its
// counter has a range above what that can draw between two readings, so that each wrap is known and the sum is what was
// drawn. One reset, that no wrap explains, takes out its own interval, and no other.
func TestTallyGivesBackTheJoules(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 4))
	for range 2000 {
		tdp := 1 + 500*random.Float64()
		mostUj := uint64(tdpTimes * tdp * 1e6 * (time.Second + creditTime).Seconds())
		c := Counter{Name: "p0", TDPWatts: tdp, TDPFrom: "said", RangeUj: mostUj + 1 + random.Uint64N(50*mostUj)}
		tally := &tally{Counter: c, update: time.Millisecond}
		at, drawn, shown := time.Unix(0, 0), uint64(0), random.Uint64N(c.RangeUj)
		tally.add(at, shown)
		n := 2 + random.IntN(60)
		resetAt := random.IntN(2 * n) // in half of the cases there is none
		reset := time.Duration(0)
		for i := range n {
			over := time.Duration(1 + random.Int64N(int64(time.Second)))
			uj := uint64(random.Float64() * tdpTimes * tdp * 1e6 * over.Seconds())
			shownNext := (shown + uj) % c.RangeUj
			if i == resetAt {
				shownNext = random.Uint64N(shown + 1)
				if c.RangeUj-shown+shownNext <= mostUj || shownNext == shown {
					shownNext = (shown + uj) % c.RangeUj // a reset that a wrap explains cannot be told from it
				} else {
					reset = over
				}
			}
			at = at.Add(over)
			tally.add(at, shownNext)
			if shown = shownNext; i != resetAt || reset == 0 {
				drawn += uj
			}
		}
		if tally.sumUj != drawn || tally.unknownFor != reset {
			t.Fatalf("%+v counted %d uJ of %d, unknown for %v and reset for %v: %+v", c, tally.sumUj, drawn, tally.unknownFor, reset, tally.unknown)
		}
		if m := tally.state("x", nil); (m.Status == Counts) != (reset == 0) || Doubt([]MeterState{m}) == nil != (reset == 0) {
			t.Fatalf("%+v after %v of reset", m, reset)
		}
	}
}

// TestLateReading: a package of 50 W may draw 150 J and more in a second, so that a range of 100 J may pass unseen in two.
func TestLateReading(t *testing.T) {
	tally := &tally{Counter: Counter{RangeUj: 100e6, TDPWatts: 50}}
	tally.add(time.Unix(0, 0), 0)
	tally.add(time.Unix(0, 1e9), 40e6)
	tally.add(time.Unix(3, 0), 45e6)
	if m := tally.state("x", nil); m.Joules != 40 || m.UnknownS != 2 || !strings.Contains(m.Why, "it was not read for 2s, in which it may have passed its range of 100 J more than once") {
		t.Errorf("%+v", m)
	}
}

// TestBoards: one of two boards may not be opened. It keeps its place and its number, and the other is metered.
func TestBoards(t *testing.T) {
	gpus := openBoards(2, func(i int) (GPUMeters, error) {
		if i == 0 {
			return GPUMeters{}, errors.New("open it: Unknown Error")
		}
		return GPUMeters{GPU: GPU{Name: "B"}, Counter: &fixed{name: "counter", joules: 10}}, nil
	})
	if len(gpus) != 2 || gpus[0].Err == nil || gpus[0].Err.Error() != "GPU 0: open it: Unknown Error" || gpus[1].Err != nil || gpus[1].GPU.Name != "B" {
		t.Errorf("%+v", gpus)
	}
	got, states, err := recorded(t, gpus[0].Metered("gpu0"), gpus[1].Metered("gpu1"))
	if err != nil || len(got) != 1 || got[0].Of != "gpu1" || got[0].Joules != 10 || len(states) != 2 || states[0].String() != "gpu0 failed: GPU 0: open it: Unknown Error" {
		t.Errorf("%+v, %+v, %v", got, states, err)
	}
	for limit, want := range map[float64]float64{0: 1200, 700: 700} {
		if watts, _ := (&GPU{PowerLimitWatts: limit}).designedPower(); watts != want {
			t.Errorf("a limit of %g W: %g", limit, watts)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }
