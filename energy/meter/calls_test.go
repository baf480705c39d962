package meter

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dahl/must"
)

// testBench is a machine in the virtual time of a synctest bubble, in steps of a millisecond: it
// draws idle watts that drift, more while calls run, and a counter that shows what was drawn only
// at its updates.
type testBench struct {
	begin       time.Time
	update      time.Duration
	idleWatts   float64
	driftPerSec float64 // of the idle power
	callWatts   float64 // above idle

	sync.Mutex
	at           time.Duration // to which the machine has drawn
	drawn, shown float64
	calling      bool
}

func (b *testBench) Name(int) string       { return "virtual" }
func (b *testBench) Counters() []Counter   { return []Counter{{Name: "virtual", TDPWatts: 100}} }
func (b *testBench) Update() time.Duration { return b.update }
func (b *testBench) Close() error          { return nil }

func (b *testBench) Read(uj []uint64) error {
	b.Lock()
	defer b.Unlock()
	b.draw()
	uj[0] = uint64(math.Round(1e6 * b.shown))
	return nil
}

// draw goes on to the present.
func (b *testBench) draw() {
	for now := time.Since(b.begin); b.at < now; {
		watts := b.idleWatts + b.driftPerSec*(b.at+time.Millisecond/2).Seconds()
		if b.calling {
			watts += b.callWatts
		}
		b.at += time.Millisecond
		if b.drawn += watts * 1e-3; b.at%b.update == 0 {
			b.shown = b.drawn
		}
	}
}

// call runs calls for a time.
func (b *testBench) call(d time.Duration) {
	for _, calling := range []bool{true, false} {
		b.Lock()
		b.draw()
		b.calling = calling
		b.Unlock()
		if calling {
			time.Sleep(d)
		}
	}
}

// A call of 7 ms at 130 W above idle is 0.91 J, whatever the machine draws idle and
// however that drifts; what the counter's updates leave open lies within the error
// that the result states. With updates at every step of time and no drift it is exact.
func TestMeasureCalls(t *testing.T) {
	const want = 130 * 0.007
	for _, c := range []struct {
		name       string
		update     time.Duration
		drift      float64
		atMostJ    float64 // of the stated error
		exactWatts bool
	}{
		// Stated: (150·0.001/5 + 20·0.001/1)·0.007 J
		{"fast", time.Millisecond, 0, 0.00035 + 1e-9, true},
		// (150·0.1/5 + 20·0.1/1)·0.007 = 0.035 J
		{"slow", 100 * time.Millisecond, 0, 0.036, false},
		{"prime", 137 * time.Millisecond, 0, 0.049, false},
		// The idle windows lie 1 + 5 + 4·0.1 s and some apart: they differ by 6.4 W or so,
		// of which half is stated: 0.0224 J more; idle itself is up to 33 W.
		{"drift", 100 * time.Millisecond, 1, 0.036 + 0.03, false},
	} {
		var got CallEnergy
		synctest.Test(t, func(t *testing.T) {
			b := &testBench{begin: time.Now(), update: c.update, idleWatts: 20, driftPerSec: c.drift, callWatts: 130}
			got = must.Get(MeasureCalls(t.Context(), b, Repeat{Busy: 5 * time.Second, Idle: 2 * time.Second, Every: 20 * time.Millisecond}, func() (int, error) {
				b.call(3 * 7 * time.Millisecond)
				return 3, nil
			}))(t)
		})
		off := math.Abs(got.Joules - want)
		if off > got.ErrorJoules+1e-12 || got.ErrorJoules > c.atMostJ {
			t.Errorf("%s: %g J is %g off, stated %g, at most %g", c.name, got.Joules, off, got.ErrorJoules, c.atMostJ)
		}
		if c.exactWatts && (off > 1e-9 || math.Abs(got.Watts-150) > 1e-6 || math.Abs(got.IdleWatts-20) > 1e-6) {
			t.Errorf("%s: %+v; want exactly 150 W, 20 W idle, %g J", c.name, got, want)
		}
		// 5 s are 238.1 batches of 21 ms: 239 batches.
		if got.Calls != 3*239 || math.Abs(got.Seconds-239*0.021) > 1e-9 {
			t.Errorf("%s: %d calls in %g s; want 717 in 5.019 s", c.name, got.Calls, got.Seconds)
		}
	}
}

func TestMeasureCallsErrors(t *testing.T) { synctest.Test(t, measureCallsErrors) }

func measureCallsErrors(t *testing.T) {
	b := &testBench{begin: time.Now(), update: time.Millisecond, idleWatts: 1}
	r := Repeat{Busy: 10 * time.Millisecond, Idle: 10 * time.Millisecond, Every: time.Millisecond}
	broken := errors.New("broken")
	if _, err := MeasureCalls(t.Context(), b, r, func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a call that fails: %v", err)
	}
	if _, err := MeasureCalls(t.Context(), b, r, func() (int, error) { b.call(time.Millisecond); return 0, nil }); err == nil {
		t.Error("calls that are none have joules")
	}
	if _, err := MeasureCalls(t.Context(), b, Repeat{Busy: 1}, nil); err == nil {
		t.Error("no time to idle is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureCalls(ctx, b, r, func() (int, error) { return 1, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
