package runs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/stats"
)

// An error of a prediction is large from here on, and calls are unsteady: then they take
// together this many times their medians.
const (
	largeErrorPercent = 10
	unsteadyCalls     = 1.25
	unknownShare      = 0.05 // of the predicted time, by roofline
)

// ErrorCauses says why a prediction is far off, as far as was measured; nil where it is not.
// Disturbances explain only a run that is slower than predicted. A lost device explains an error of either sign,
// since the prediction assumes all devices.
func ErrorCauses(errorPercent float64, p *schedule.Problem, measured *schedule.Schedule, of *record.Summary) []string {
	if math.Abs(errorPercent) < largeErrorPercent {
		return nil
	}
	var causes []string
	slower, load := errorPercent < 0, of.Load
	if slower && of.FirstCount() {
		causes = append(causes, "first steps count, which warm up")
	}
	for _, l := range of.Losses {
		causes = append(causes, fmt.Sprintf("%s was lost after step %d of %d", l.Device, l.AfterStep, of.Steps))
	}
	if slower && load != nil && load.SharedCores {
		causes = append(causes, "workers share cores")
	}
	if slower && load != nil && load.Disturbed {
		causes = append(causes, fmt.Sprintf("others kept %.2g of %d cores busy", load.OtherCores, load.Cores))
	}
	switch m := explain.ModelErrorOf(p); {
	case m.Measured+m.Fitted == 0 && m.Roofline > 0:
		causes = append(causes, "the platform is not calibrated")
	case m.Unknown > unknownShare:
		causes = append(causes, fmt.Sprintf("%.0f %% of the predicted time is not calibrated", 100*m.Unknown))
	}
	if times := timesMedian(p, measured); slower && times > unsteadyCalls {
		causes = append(causes, fmt.Sprintf("unsteady calls: %.1f times their medians", times))
	}
	if causes == nil {
		causes = []string{"none that was looked for (load, calibration, unsteady calls); dahl compare shows which kernels are off"}
	}
	return causes
}

// CausesText writes causes for the end of a line.
func CausesText(causes []string) string {
	if len(causes) == 0 {
		return ""
	}
	return "; cause: " + strings.Join(causes, ", ")
}

// timesMedian is the total time of all calls of a schedule, over the total if each call took the
// median of its kind on its device.
func timesMedian(p *schedule.Problem, s *schedule.Schedule) float64 {
	type call struct {
		task   dag.TaskID
		device platform.DeviceID
	}
	var all, steady time.Duration
	calls := map[call][]time.Duration{}
	for _, span := range s.Spans {
		of := call{span.Task, p.Platform.Workers[span.Worker].Device}
		calls[of] = append(calls[of], span.End-span.Start)
		all += span.End - span.Start
	}
	for _, list := range calls {
		steady += stats.Median(list) * time.Duration(len(list))
	}
	return cli.Ratio(float64(all), float64(steady))
}
