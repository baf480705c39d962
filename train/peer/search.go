package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/train"
)

// Best is the setting that is the fastest of all in a short trial.
const Best = "best"

// variant is a setting with a format.
type variant struct {
	setting Setting
	format  string
}

func (v variant) String() string { return Label(v.setting, v.format) }

// Label names a setting with a format.
func Label(s Setting, format string) string { return s.Name + ": " + format }

// Searched is the outcome of a short trial of a setting.
type Searched struct {
	Setting     string  `json:"setting"` // with its format
	SamplesPerS float64 `json:"images_per_s"`

	variant variant
}

// variantsOf are those that a job's setting names: more than one are to be tried.
func variantsOf(j *Job, t *Twin) (named []variant, err error) {
	var all []variant
	for _, s := range j.Program.Settings(t.Device, t.Threads) {
		for _, format := range Formats(j.Workload.Model) {
			all = append(all, variant{s, format})
		}
	}
	for _, v := range all {
		if j.Setting == Best || j.Setting == v.setting.Name || j.Setting == v.String() {
			named = append(named, v)
		}
	}
	if len(named) == 0 {
		return nil, train.InputError{Err: fmt.Errorf("%s has no setting %q on %s with %d threads; want %s or one of %v", j.Program, j.Setting, t.Device, t.Threads, Best, all)}
	}
	return named, nil
}

// A trial runs trialSteps steps, and then trials times as many as take about trialTime.
const (
	trialSteps = 5
	trials     = 2
	trialTime  = 200 * time.Millisecond
	trialMost  = 1024 // samples
)

// search tries variants for a short time, where there are several, and orders them by the better of two
// times, the fastest first. Those that do not run are left out, unless none runs.
func search(ctx context.Context, j *Job, t *Twin, tried []variant, dir string, first ours) (found []Searched, err error) {
	if len(tried) == 1 {
		return nil, nil
	}
	if err := t.Export(dir, first.weights, j.Workload, max(trialMost, t.Batch)); err != nil {
		return nil, err
	}
	var failed error
	for len(tried) > 0 {
		n := slices.IndexFunc(tried, func(v variant) bool { return v.setting.Name != tried[0].setting.Name })
		if n < 0 {
			n = len(tried)
		}
		some, err := tryOne(ctx, j, t, tried[:n], dir)
		var missing *MissingError
		if errors.As(err, &missing) || ctx.Err() != nil {
			return nil, err
		}
		found, failed, tried = append(found, some...), errors.Join(failed, err), tried[n:]
	}
	if len(found) == 0 {
		return nil, failed
	}
	slices.SortStableFunc(found, func(a, b Searched) int { return cmp.Compare(b.SamplesPerS, a.SamplesPerS) })
	return found, nil
}

// tryOne tries the formats of one setting in one process.
func tryOne(ctx context.Context, j *Job, t *Twin, tried []variant, dir string) (found []Searched, err error) {
	w, versions, err := Start(ctx, dir, j.Python, j.Program, tried[0].setting, t.Device, t.Threads)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if j.Setting == Best && !tried[0].setting.Differs(versions) {
		return nil, nil
	}
	for i, v := range tried {
		if err := w.Open(t, v.format, i == 0); err != nil {
			return found, ended(ctx, err)
		}
		took, err := w.Time(ModeTrain, v.format, trialSteps, trialSteps)
		if err != nil {
			return found, ended(ctx, err)
		}
		steps := int(max(trialSteps, trialTime*trialSteps/max(1, took)))
		least := time.Duration(math.MaxInt64)
		for range trials {
			if took, err = w.Time(ModeTrain, v.format, 1, steps); err != nil {
				return found, ended(ctx, err)
			}
			least = min(least, max(1, took))
		}
		found = append(found, Searched{Setting: v.String(), SamplesPerS: float64(steps*t.Batch) / least.Seconds(), variant: v})
	}
	return found, nil
}

// ended is the error of a worker, or of the context whose end killed it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
