package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir"
	"dahl/schedule"
	"dahl/train"
)

func newVerify([]string) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "check that a run directory is sound",
		Long: `verify derives again what the files of a run claim: the graph's dependences, the
plan's completeness, every start and end of the schedules against graph and
platform, that the tasks and copies of the plan ran in its order, the joules, and
that no two live buffers share a byte in any memory. It prints a line for each and
exits with 1 if one does not hold.`,
		Args: wantArgs(1, 1, "the directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			state := stateText(args[0])
			m, err := readManifest(args[0])
			switch {
			case state != "" && errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%s: %s", args[0], state)
			case err != nil:
				return err
			case state != "":
				fmt.Fprintf(cmd.OutOrStdout(), "%-22s %s\n", "the next run", state)
			}
			v := &verification{dir: args[0], manifest: m, out: cmd.OutOrStdout()}
			v.run()
			if v.wrong > 0 {
				return fmt.Errorf("%s: %d of %d checks failed", v.dir, v.wrong, v.done)
			}
			return nil
		},
	}
}

// stateText says what goes on in a directory beside a finished run; empty: nothing.
func stateText(dir string) string {
	switch s := rundir.Look(dir); {
	case s.Holder != "":
		return fmt.Sprintf("still running (%s)", s.Holder)
	case s.Step > 0:
		return fmt.Sprintf("interrupted after step %d, resume with dahl execute --resume %s", s.Step, dir)
	case s.Interrupted:
		return "interrupted, nothing to resume"
	}
	return ""
}

// verification checks one run directory and prints a line for each check.
type verification struct {
	dir      string
	manifest *manifest
	out      io.Writer

	done, wrong int

	graph    *dag.Graph
	platform *platform.Platform
	plan     *schedule.Plan
	decision *schedule.Decision // by the plan
}

// check prints one line and reports whether all is well.
func (v *verification) check(what string, err error) bool {
	v.done++
	if err == nil {
		fmt.Fprintf(v.out, "%-22s ok\n", what)
		return true
	}
	v.wrong++
	fmt.Fprintf(v.out, "%-22s %s\n", what, cli.OneLine(err))
	return false
}

func (v *verification) path(name string) string { return filepath.Join(v.dir, name) }

// run checks in the order in which the files need each other and leaves out what
// cannot be judged once something they need is wrong.
func (v *verification) run() {
	v.check("manifest", v.checkManifest())
	v.check("files", rundir.Verify(v.dir))
	if v.manifest.Lists(weightsFile) {
		v.check(weightsFile, v.checkWeights())
	}
	soundPlatform := v.check(platformFile, v.loadPlatform())
	if !v.check(graphFile, v.loadGraph()) || !soundPlatform {
		return
	}
	if !v.check(planFile, v.loadPlan()) {
		return
	}
	v.checkLayout()
	for _, name := range []string{scheduleFile, predictedFile} {
		if v.manifest.Lists(name) {
			v.checkSchedule(name)
		}
	}
}

// checkManifest verifies that the run was completed.
func (v *verification) checkManifest() error {
	if !v.manifest.Complete && !v.manifest.ended() {
		return fmt.Errorf("the run was interrupted")
	}
	return nil
}

func (v *verification) checkWeights() error {
	arrays, err := nn.ReadNPZ(v.path(weightsFile), nil)
	return cmp.Or(err, sameHash(train.HashOf(arrays), v.manifest.WeightsHash))
}

// sameHash compares a hash with the manifest's.
func sameHash(got, want string) error {
	if got != want {
		return fmt.Errorf("its hash is %.12s, the manifest says %.12s", got, want)
	}
	return nil
}

func (v *verification) loadPlatform() (err error) {
	if v.platform, err = platform.Load(v.path(platformFile)); err != nil {
		return err
	}
	return cmp.Or(v.platform.Check(), sameHash(v.platform.Hash(), v.manifest.Platform.SHA256))
}

func (v *verification) loadGraph() (err error) {
	if v.graph, err = openAs(v.path(graphFile), dag.ReadJSON); err != nil {
		return err
	}
	if err := v.graph.Check(); err != nil {
		return err
	}
	if len(v.manifest.Graphs) == 0 {
		return fmt.Errorf("the manifest names no graph")
	}
	return sameHash(v.graph.Hash(), v.manifest.Graphs[0].SHA256)
}

// loadPlan reads the plan and the costs of the variants that it names.
func (v *verification) loadPlan() (err error) {
	if v.plan, err = loadPlan(v.path(planFile), v.graph, v.platform); err != nil {
		return err
	}
	v.decision, err = decideRecorded(v.manifest, v.graph, v.platform, v.plan)
	return err
}

// maxLayoutTasks bounds the graphs whose memory is checked: the check walks two
// steps from every task.
const maxLayoutTasks = 20_000

// checkLayout verifies the places that the plan lists.
func (v *verification) checkLayout() {
	if v.plan.Places == nil {
		return
	}
	tooLarge := v.graph.NumTasks() > maxLayoutTasks
	pg := v.decision.Graphs[0].Placed
	g, err := pg.Graph()
	if err != nil {
		v.check("layout", err)
		return
	}
	for m, l := range v.decision.Layouts(0) {
		all := *l
		all.Reuse, all.ReuseNext = pg.Reuse, pg.ReuseNext()
		what := "layout"
		if v.platform.Spread() {
			what += " of " + v.platform.Memories[m].Name
		}
		if tooLarge {
			fmt.Fprintf(v.out, "%-22s not checked: more than %d tasks\n", what, maxLayoutTasks)
			continue
		}
		v.check(what, all.Check(g))
	}
}

// checkFollowed verifies that a schedule is what the plan says, where the plan was made
// before it.
func (v *verification) checkFollowed(s *schedule.Schedule, p *schedule.Problem) error {
	if static, err := v.manifest.Options.planned(); err != nil || !static {
		return err
	}
	if err := s.Follows(p, v.plan); err != nil {
		return err
	}
	return s.FollowsCopies(v.decision.Placed, 0)
}

// checkSchedule checks one schedule; the energy file belongs to the run's own.
func (v *verification) checkSchedule(name string) {
	s, err := loadSchedule(v.path(name), v.decision.Problem(0, 1, false))
	if err != nil {
		v.check(name, err)
		return
	}
	p := v.decision.Problem(0, s.Steps, false)
	if v.check(name, cmp.Or(s.Check(p), v.checkFollowed(s, p))) && name == scheduleFile {
		v.check(energyFile, v.checkEnergy(s, p))
	}
}

// checkEnergy integrates the powers over the schedule again.
func (v *verification) checkEnergy(s *schedule.Schedule, p *schedule.Problem) error {
	report, err := plan.EnergyOf(s, p, nn.BatchOf(p.Graph))
	if err != nil {
		return err
	}
	want, err := json.Marshal(report)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(v.path(energyFile))
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if err := json.Compact(&got, data); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), want) {
		return fmt.Errorf("the schedule and the platform's powers give other joules: %.6g J in all", report.TotalJoules)
	}
	return nil
}
