package main

import (
	"cmp"
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/plan"
	"dahl/plots"
	"dahl/schedule"
	"dahl/simulate"
)

func newCompare(*app) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "compare [PREDICTED] MEASURED",
		Short: "lay a predicted run beside a measured one",
		Long: `compare reads two run directories of one graph and prints time, energy, memory,
and every worker, kernel and copy: predicted, measured, error. The error of the step
is split by giving the simulator the measured durations.

An executed run holds its own prediction: name its directory alone.`,
		Example: "  dahl compare dahl-simulate dahl-execute\n  dahl compare dahl-execute --json",
		Args:    wantArgs(1, 2, "an executed run, or a predicted and an executed one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return compareDirs(cmd.Context(), cmd.OutOrStdout(), args[0], args[len(args)-1], &out)
		},
	}
	cmd.Flags().StringVar(&out.dir, "out", "", "also draw both runs on one axis into this existing `directory`")
	cmd.Flags().BoolVar(&out.json, "json", false, "print one JSON object instead of text")
	return cmd
}

func compareDirs(ctx context.Context, stdout io.Writer, predictedDir, measuredDir string, out *output) error {
	measured, err := loadRun(measuredDir)
	if err != nil {
		return err
	}
	picture := ""
	if out.dir != "" {
		picture = filepath.Join(out.dir, "compare.svg")
	}
	if err := checkWritable(picture); err != nil {
		return err
	}
	if measured.schedule.World != schedule.Measured {
		return inputErrorf("%s holds a simulated run; the last directory must be an executed one", measuredDir)
	}
	unrecordedS := 0.0 // as predicted, where it is not in the measured run
	problem, decision, predicted := measured.problem, measured.decision, (*schedule.Schedule)(nil)
	if filepath.Clean(predictedDir) == filepath.Clean(measuredDir) {
		if predicted, err = measured.predicted(); err != nil {
			return err
		}
		if predicted == nil {
			return inputErrorf("%s holds no prediction; name a simulated run first", measuredDir)
		}
	} else {
		other, err := loadRun(predictedDir)
		if err != nil {
			return err
		}
		if other.problem.Graph.Hash() != problem.Graph.Hash() {
			return inputErrorf("%s and %s are of different graphs: compare runs of one model, batch, type, data and platform (whose caches decide the lowering)", predictedDir, measuredDir)
		}
		if len(other.problem.Platform.Workers) != len(problem.Platform.Workers) {
			return inputErrorf("%s has %d workers, %s has %d", predictedDir, len(other.problem.Platform.Workers), measuredDir, len(problem.Platform.Workers))
		}
		problem, decision = other.problem, other.decision
		if predicted, unrecordedS, err = other.recordedSteps(ctx); err != nil {
			return err
		}
	}
	c, err := compareSchedules(ctx, decision, predicted, measured.schedule)
	if err != nil {
		return err
	}
	if r := measured.summary.Recorded; r != nil && r.Of > r.Steps {
		c.UnrecordedStepS, c.PredictedUnrecordedStepS = measured.summary.PeriodS, cmp.Or(unrecordedS, r.PredictedS)
	}
	c.Causes = errorCauses(c.Step.ErrorPercent, problem, measured.schedule, measured.summary.Load)
	if picture != "" {
		if err := drawComparison(picture, problem, predicted, measured.schedule, measured.summary); err != nil {
			return err
		}
	}
	if out.json {
		return printJSON(stdout, c)
	}
	c.print(stdout, measured.summary.Shown)
	return nil
}

// recordedSteps is a run's schedule, or where it is a simulated one of steps that are not
// recorded, and recorded ones take longer, that of recorded steps by the same plan and what
// one that is not recorded takes.
func (r *loadedRun) recordedSteps(ctx context.Context) (s *schedule.Schedule, unrecordedS float64, err error) {
	if r.schedule.World != schedule.Simulated || !timingCosts(r.problem.Platform) {
		return r.schedule, 0, nil
	}
	s, err = plan.Simulate(ctx, r.decision, 0, r.schedule.Steps, simulate.Options{Timed: true})
	return s, r.summary.PeriodS, err
}

// drawComparison draws both schedules on one time axis; the summary is of the measured run.
func drawComparison(path string, p *schedule.Problem, predicted, measured *schedule.Schedule, of *summary) error {
	runs := make([]*plots.Run, 2)
	for i, s := range []*schedule.Schedule{predicted, measured} {
		q := *p
		q.Steps = s.Steps
		var err error
		if runs[i], err = newPlotRun(&q, s, of); err != nil {
			return err
		}
	}
	return plots.Compare(path, runs[0], runs[1])
}
