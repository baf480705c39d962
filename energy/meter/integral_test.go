package meter

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"dahl/must"
)

// integrate reads a power every h from 0 to end and returns the joules.
func integrate(t *testing.T, power func(time.Duration) float64, h, end time.Duration) (joules float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m := &powerMeter{watts: func() (float64, error) { return power(time.Since(begin)), nil }}
		for ; time.Since(begin) <= end; time.Sleep(h) {
			uj := []uint64{0}
			must.Do(t, m.Read(uj))
			joules = float64(uj[0]) / 1e6
		}
	})
	return joules
}

// Constant and linear powers are integrated exactly, up to the microjoule that is shown: 137 W for 3 s are 411 J; 11 W
// rising by 7 W/s for 3 s are 33 + 7·9/2 = 64.5 J. A jump from 40 to 240 W at 1.49 s
// is off by at most half an interval: 0.02/2·200 = 2 J of 40·1.49 + 240·1.51 = 422 J.
func TestPowerIntegral(t *testing.T) {
	const h = 20 * time.Millisecond
	for _, c := range []struct {
		name          string
		power         func(time.Duration) float64
		want, atMostJ float64
	}{
		{"constant", func(time.Duration) float64 { return 137 }, 411, 1e-6},
		{"ramp", func(at time.Duration) float64 { return 11 + 7*at.Seconds() }, 64.5, 1e-6},
		{"jump", func(at time.Duration) float64 {
			if at < 1490*time.Millisecond {
				return 40
			}
			return 240
		}, 422, 2 + 1e-6},
	} {
		if got := integrate(t, c.power, h, 3*time.Second); math.Abs(got-c.want) > c.atMostJ {
			t.Errorf("%s: %g J, want %g within %g", c.name, got, c.want, c.atMostJ)
		}
	}
}

func TestPowerIntegralFailsWithItsSensor(t *testing.T) {
	gone := errors.New("gone")
	m := &powerMeter{watts: func() (float64, error) { return 0, gone }}
	if err := m.Read([]uint64{0}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
