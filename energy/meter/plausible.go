package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// A reading counts as measured only if it can be true. These are the rules for every meter:
//
//   - Counters that show the same numbers are one. Two that are independent never agree to the
//     microjoule, but a reading may fall between the updates of the two: so they need not agree
//     at every reading, if they do at severalValues.
//   - Between two readings a counter rises by what was drawn. It may wrap at its own range, once.
//     Any other fall, and more than tdpTimes the designed power, makes the interval unknown. So does
//     a reading so late that the counter may have wrapped more than once.
//   - A counter that has not moved for stuckAfter did not count meanwhile. A counter without any
//     movement is none.
//   - A meter that cannot be opened or fails is named, and the others are read.
//
// The joules of a consumer are measured where all of its counters are whole by these rules, and else
// not known.
const (
	tdpTimes      = 3
	severalValues = 3
	stuckAfter    = time.Second
	// creditTime is for how long a counter may hold joules back, to show them at once.
	creditTime = 100 * time.Millisecond
	// lateAfter is how long a counter may go unread before its wraps are uncertain.
	lateAfter = time.Second
	// unknownKept is how many of a counter's unknown intervals are listed.
	unknownKept = 8
)

// Counter describes a number of microjoules that grows.
type Counter struct {
	Name     string  // "RAPL package-0"
	RangeUj  uint64  // it starts again from 0 after this; zero means that it never does
	TDPWatts float64 // the designed power of its package or board
	TDPFrom  string  // where that is from
	Integral bool    // of a sensor's watts, from 0
}

// Status is the verdict on a counter.
type Status string

// The verdicts.
const (
	Counts  Status = "measured"
	Merged  Status = "merged"  // with a twin, which is counted
	Unknown Status = "unknown" // in some intervals
	Stuck   Status = "stuck"
	Denied  Status = "denied"
	Failed  Status = "failed"
)

// MeterState is the verdict on a counter of a meter over a run.
type MeterState struct {
	Of       string     `json:"of"` // the consumer
	Meter    string     `json:"meter,omitempty"`
	Status   Status     `json:"status"`
	Why      string     `json:"why,omitempty"`
	Joules   float64    `json:"joules"`  // counted in the known intervals
	Seconds  float64    `json:"seconds"` // for which it was read
	UnknownS float64    `json:"unknown_s,omitempty"`
	Unknown  []Interval `json:"unknown,omitempty"` // the first of them
	Unused   bool       `json:"unused,omitempty"`  // of a GPU that no device of the platform is
}

// Interval is a span of implausible readings of a counter.
type Interval struct {
	FromS   float64 `json:"from_s"` // since the meters were started
	Seconds float64 `json:"seconds"`
	Why     string  `json:"why"`
}

// Whole reports whether all that the counter covers was counted, by itself or by its twin.
func (m *MeterState) Whole() bool { return m.Status == Counts || m.Status == Merged }

// String says it in words: "RAPL package-0 of processors: stuck; …".
func (m *MeterState) String() string {
	name := m.Of
	if m.Meter != "" {
		name = m.Meter + " of " + m.Of
	}
	if m.Status == Counts {
		return name + " " + string(Counts)
	}
	return fmt.Sprintf("%s %s: %s", name, m.Status, m.Why)
}

// Doubt names the meters that have not counted everything. Nil means that all have.
func Doubt(states []MeterState) error {
	var missing []string
	for i := range states {
		if m := &states[i]; !m.Whole() && !m.Unused {
			missing = append(missing, m.String())
		}
	}
	if missing == nil {
		return nil
	}
	return errors.New(strings.Join(missing, "; "))
}

// ImplausibleError has the reason for which a reading is no measurement.
type ImplausibleError struct{ Err error }

func (e *ImplausibleError) Error() string { return e.Err.Error() }
func (e *ImplausibleError) Unwrap() error { return e.Err }

// cannotOpen is the state of a meter that was not read at all.
func cannotOpen(of *Metered) MeterState {
	m := MeterState{Of: of.Of, Status: Failed, Why: oneLine(of.Err), Unused: of.Unused}
	if errors.Is(of.Err, fs.ErrPermission) {
		m.Status = Denied
	}
	return m
}

// tally adds up one counter.
type tally struct {
	Counter
	update time.Duration

	begin, at, moved time.Time // the first reading, the last one, and the one that last showed another value
	uj, sumUj        uint64    // shown last; of the intervals that are known
	creditUj         float64   // that may have been drawn and not been shown
	values           int       // that it has shown, one after the other
	unknown          []Interval
	unknownFor       time.Duration
	until            time.Time // the end of the last unknown interval
}

// add adds a reading of the counter at a time.
func (t *tally) add(at time.Time, uj uint64) {
	if t.values == 0 {
		t.begin, t.at, t.moved, t.uj, t.values = at, at, at, uj, 1
		t.creditUj = t.most(creditTime)
		return
	}
	t.creditUj = min(t.creditUj, t.most(creditTime)) + t.most(at.Sub(t.at))
	rose, why := t.rose(at, uj)
	switch stall := at.Sub(t.moved); {
	case why != "":
		t.creditUj = 0
		t.markUnknown(t.at, at, why)
	case uj == t.uj && stall >= max(stuckAfter, 2*t.update):
		t.markUnknown(t.moved, at, "it did not move")
	default:
		t.sumUj += rose
		t.creditUj -= float64(rose)
	}
	if uj != t.uj {
		t.moved, t.uj = at, uj
		t.values++
	}
	t.at = at
}

// most is the greatest believable number of microjoules in a time.
func (t *tally) most(in time.Duration) float64 { return tdpTimes * t.TDPWatts * 1e6 * in.Seconds() }

// rose is by how much the counter rose up to a reading. why is the reason if that is not known.
func (t *tally) rose(at time.Time, uj uint64) (rose uint64, why string) {
	rose = uj - t.uj
	what := fmt.Sprintf("it rose by %s", joulesOf(rose))
	if uj < t.uj {
		what = fmt.Sprintf("it fell from %s to %s", joulesOf(t.uj), joulesOf(uj))
		if t.RangeUj == 0 {
			return 0, what + ", and it never starts again"
		}
		if t.uj > t.RangeUj {
			return 0, fmt.Sprintf("%s, which lies beyond its range of %s", what, joulesOf(t.RangeUj))
		}
		rose = t.RangeUj - t.uj + uj
		what += fmt.Sprintf(", and a wrap at its range of %s would be %s", joulesOf(t.RangeUj), joulesOf(rose))
	}
	over := at.Sub(t.at)
	if float64(rose) > t.creditUj {
		return 0, fmt.Sprintf("%s in %s, more than %d times %.4g W (%s)", what, shortly(over), tdpTimes, t.TDPWatts, t.TDPFrom)
	}
	if over > lateAfter && t.RangeUj > 0 && float64(rose)+float64(t.RangeUj) <= t.creditUj {
		return 0, fmt.Sprintf("it was not read for %s, in which it may have passed its range of %s more than once", shortly(over), joulesOf(t.RangeUj))
	}
	return rose, ""
}

// markUnknown makes a span unknown, as far as it is not yet.
func (t *tally) markUnknown(from, to time.Time, why string) {
	if from.Before(t.until) {
		from = t.until
	}
	span := to.Sub(from)
	if n := len(t.unknown); n > 0 && from.Equal(t.until) {
		t.unknown[n-1].Seconds += span.Seconds()
	} else {
		t.unknown = append(t.unknown, Interval{FromS: from.Sub(t.begin).Seconds(), Seconds: span.Seconds(), Why: why})
	}
	t.unknownFor += span
	t.until = to
}

// state is the verdict on the counter. twin is the counter with the same readings; nil means none.
func (t *tally) state(of string, twin *tally) MeterState {
	over := t.at.Sub(t.begin)
	m := MeterState{Of: of, Meter: t.Name, Status: Counts, Joules: float64(t.sumUj) / 1e6, Seconds: over.Seconds()}
	switch {
	case t.values <= 1:
		m.Status, m.Joules = Stuck, 0
		m.Why = fmt.Sprintf("it shows %s and has not moved in %s", joulesOf(t.uj), shortly(over))
	case twin != nil:
		m.Status, m.Joules = Merged, 0
		m.Why = fmt.Sprintf("it shows the same as %s, so that the two are one and count once", twin.Name)
	case len(t.unknown) > 0:
		m.Status, m.UnknownS = Unknown, t.unknownFor.Seconds()
		m.Unknown = t.unknown[:min(len(t.unknown), unknownKept)]
		first := m.Unknown[0]
		m.Why = fmt.Sprintf("what it counted in %s of %s is not known; after %s %s", shortly(t.unknownFor), shortly(over), shortly(time.Duration(first.FromS*1e9)), first.Why)
	}
	return m
}

// twins finds counters with the same readings.
type twins struct{ pairs map[[2]*tally]*agreement }

// agreement is how often two counters agreed.
type agreement struct {
	values int    // different ones that both showed
	last   uint64 // of them
	apart  bool   // they have also shown different ones
}

// compare looks at counters that were read at the same time.
func (s *twins) compare(read []*tally) {
	for j, b := range read {
		for _, a := range read[:j] {
			if a.Integral || b.Integral {
				continue
			}
			pair := s.pairs[[2]*tally{a, b}]
			if pair == nil {
				if s.pairs == nil {
					s.pairs = map[[2]*tally]*agreement{}
				}
				pair = new(agreement)
				s.pairs[[2]*tally{a, b}] = pair
			}
			switch {
			case a.uj != b.uj:
				pair.apart = true
			case pair.values == 0 || pair.last != a.uj:
				pair.values, pair.last = pair.values+1, a.uj
			}
		}
	}
}

// twinOf finds an earlier counter with the same readings. Nil means none.
func (s *twins) twinOf(t *tally, meters []*watched) *tally {
	for _, w := range meters {
		for _, before := range w.tallies {
			if before == t {
				return nil
			}
			if p := s.pairs[[2]*tally{before, t}]; p != nil && (p.values >= severalValues || p.values > 1 && !p.apart) {
				return before
			}
		}
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// joulesOf prints microjoules.
func joulesOf(uj uint64) string { return fmt.Sprintf("%.6g J", float64(uj)/1e6) }

// shortly prints a time without digits that say nothing.
func shortly(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
