package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fixed is a meter whose second read is a total of joules after the first, or fails.
type fixed struct {
	name   string
	joules float64
	update time.Duration
	fail   error
	reads  int
}

func (m *fixed) Name(int) string { return m.name }
func (m *fixed) Counters() []Counter {
	return []Counter{{Name: m.name, TDPWatts: 1000, Integral: true}}
}
func (m *fixed) Update() time.Duration { return m.update }
func (m *fixed) Close() error          { return nil }
func (m *fixed) Read(uj []uint64) error {
	uj[0] = 0
	if m.reads++; m.reads > 1 {
		uj[0] = uint64(1e6 * m.joules)
		return m.fail
	}
	return nil
}

// recorded is what meters say that are read at 0 and at 2 s only.
func recorded(t *testing.T, metered ...Metered) (got []Reading, states []MeterState, err error) {
	for i := range metered {
		metered[i].Every = time.Hour
	}
	synctest.Test(t, func(*testing.T) {
		r := Record(metered)
		time.Sleep(2 * time.Second)
		got, err = r.Stop()
		states = r.MeterStates()
	})
	return got, states, err
}

// 448 J by a counter and 400 J by integrated power over 2 s: 12 % apart. The
// counter lags by up to 0.1 s at 224 W: 22.4 J; the power by 0.025 s at 200 W: 5 J.
func TestRecorder(t *testing.T) {
	got, _, err := recorded(t,
		Metered{Of: "gpu0", Meter: &fixed{name: "counter", joules: 448, update: 100 * time.Millisecond},
			Second: &fixed{name: "power", joules: 400, update: 25 * time.Millisecond}},
		Metered{Of: "cpu", Meter: &fixed{name: "RAPL", joules: 60, update: time.Millisecond}})
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	g, second := got[0], got[0].Second
	if g.Of != "gpu0" || g.Meter != "counter" || g.Joules != 448 || g.Seconds != 2 || math.Abs(g.ErrorJoules-22.4) > 1e-9 {
		t.Errorf("first method: %+v", g)
	}
	if second == nil || second.Meter != "power" || second.Joules != 400 || math.Abs(second.ErrorJoules-5) > 1e-9 || math.Abs(second.DisagreementPercent-12) > 1e-9 {
		t.Errorf("second method: %+v", second)
	}
	if c := got[1]; c.Of != "cpu" || c.Joules != 60 || c.Second != nil || math.Abs(c.ErrorJoules-0.03) > 1e-9 {
		t.Errorf("one method: %+v", c)
	}
}

// A counter that shows nothing of a run of 2 s, in which 400 J were drawn: the integral takes its place.
func TestRecorderTakesTheOtherMethod(t *testing.T) {
	got, states, err := recorded(t, Metered{Of: "gpu0", Meter: &fixed{name: "counter", update: 3 * time.Second}, Second: &fixed{name: "power", joules: 400}})
	if err != nil || len(got) != 1 || got[0].Meter != "power" || got[0].Joules != 400 || got[0].Second != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(states) != 2 || states[0].String() != "counter of gpu0 stuck: it shows 0 J and has not moved in 2s" || states[1].Status != Counts {
		t.Errorf("states %+v", states)
	}
}

// A method that fails is told of and the rest is kept.
func TestRecorderKeepsWhatWorks(t *testing.T) {
	gone := errors.New("fell off the bus")
	got, states, err := recorded(t,
		Metered{Of: "gpu0", Meter: &fixed{name: "counter", joules: 10}, Second: &fixed{name: "power", fail: gone}},
		Metered{Of: "gpu1", Meter: &fixed{name: "counter", fail: gone}, Second: &fixed{name: "power", joules: 20}},
		Metered{Of: "GPU 2", Err: fmt.Errorf("GPU 2: open it: %w", fs.ErrPermission)},
		Metered{Of: "cpu", Meter: &fixed{name: "RAPL", joules: 30}})
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "power") || !strings.Contains(err.Error(), "counter") {
		t.Errorf("error %v", err)
	}
	if len(got) != 3 || got[0].Of != "gpu0" || got[0].Second != nil || got[1].Of != "gpu1" || got[1].Meter != "power" || got[2].Of != "cpu" || got[2].Joules != 30 {
		t.Errorf("readings %+v", got)
	}
	var became []Status
	for _, s := range states {
		became = append(became, s.Status)
	}
	if want := []Status{Counts, Failed, Failed, Counts, Denied, Counts}; !slices.Equal(became, want) || states[4].String() != "GPU 2 denied: GPU 2: open it: permission denied" {
		t.Errorf("states %+v, want %v", states, want)
	}
}

// TestRecorderNow asks at 2.5 s what was read at 0, 1 and 2 s: 5, 7 and 12 J, so 7 J since the start.
func TestRecorderNow(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		begin := time.Now()
		r := Record([]Metered{{Of: "cpu", Meter: &scripted{[]float64{5, 7, 12, 13}}, Every: time.Second, Celsius: func() (float64, error) { return 47, nil }}})
		time.Sleep(2500 * time.Millisecond)
		if got, want := r.Now()[0], (Counted{"cpu", begin.Add(2 * time.Second), 7, 47}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if _, err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
}
