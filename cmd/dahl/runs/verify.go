package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/execute/hardware"
	"dahl/nn/npz"
	"dahl/rundir"
	"dahl/train"
)

// NewVerify is the command verify. Prove checks the certificate of a run again, from its directory and its manifest.
func NewVerify(prove func(context.Context, string, *record.Manifest) error) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "check that a run directory is sound",
		Long: `verify compares the files of a run with the hashes in its manifest, and finds what is
missing, changed or not the run's; a manifest that has changed itself is refused. It derives again what they claim: the graph's
dependences, the plan's completeness, every start and end of the schedules against
graph and platform, that the tasks and copies of the plan ran in its order, the
joules, and that no two live buffers share a byte in any memory. It prints a line for
each and exits with 1 if one does not hold. It also says whether a run is being
written into the directory, or one was cut off there.`,
		Args: cli.WantArgs(1, 1, "the directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			state := stateText(args[0])
			m, err := record.ReadManifest(args[0])
			switch {
			case state != "" && errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("%s: %s", args[0], state)
			case err != nil:
				return err
			case state != "":
				fmt.Fprintf(cmd.OutOrStdout(), "%-22s %s\n", "the next run", state)
			}
			v := &verification{dir: args[0], manifest: m, out: cmd.OutOrStdout(), prove: prove}
			v.run(cmd.Context())
			if v.wrong > 0 {
				return fmt.Errorf("%s: %d of %d checks failed", v.dir, v.wrong, v.done)
			}
			return nil
		},
	}
}

// stateText describes an unfinished run in a directory. Empty means that there is none.
func stateText(dir string) string {
	switch s := rundir.Look(dir); {
	case s.Holder != "":
		return fmt.Sprintf("still running (%s)", s.Holder)
	case s.Damage != nil:
		return fmt.Sprintf("interrupted, and %v", s.Damage)
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
	manifest *record.Manifest
	out      io.Writer
	prove    func(context.Context, string, *record.Manifest) error

	done, wrong int
}

// check prints one line and reports whether all is well.
func (v *verification) check(what string, err error) bool {
	if left := rundir.Unchecked(""); errors.As(err, &left) {
		fmt.Fprintf(v.out, "%-22s not checked: %s\n", what, left)
		return true
	}
	v.done++
	if err == nil {
		fmt.Fprintf(v.out, "%-22s ok\n", what)
		return true
	}
	v.wrong++
	fmt.Fprintf(v.out, "%-22s %s\n", what, cli.OneLine(err))
	return false
}

// run checks the manifest, the files by it, and what they claim.
func (v *verification) run(ctx context.Context) {
	m := v.manifest
	v.check("manifest", v.checkManifest())
	v.check("files", rundir.Verify(v.dir))
	if m.Command == record.PeerCommand {
		return // of what dahl did not compute nothing follows
	}
	if v.manifest.Lists(record.WeightsFile) {
		v.check(record.WeightsFile, v.checkWeights())
	}
	claims := &rundir.Claims{Head: &m.Head, PlatformSHA256: m.Platform.SHA256, Target: hardware.Target{Variant: m.Options.Variant}}
	if len(m.Graphs) > 0 {
		claims.GraphSHA256 = m.Graphs[0].SHA256
	}
	if m.Options.Plan == "" {
		var err error
		if claims.Policy, err = m.Options.Scheduler(); err != nil {
			v.check("policy", err)
			return
		}
	}
	rundir.VerifyResults(v.dir, claims, v.check)
	if m.Options.Deadline > 0 {
		v.check("deadline", v.checkDeadline())
	}
	if m.Lists(rundir.CertificateFile) {
		v.check(rundir.CertificateFile, v.prove(ctx, v.dir, v.manifest))
	}
}

// checkManifest verifies that the run was completed.
func (v *verification) checkManifest() error {
	if !v.manifest.Complete && !v.manifest.Ended() {
		return fmt.Errorf("the run was interrupted")
	}
	return nil
}

func (v *verification) checkWeights() error {
	arrays, err := npz.Read(filepath.Join(v.dir, record.WeightsFile), nil)
	if err != nil {
		return err
	}
	if hash := train.HashOf(arrays); hash != v.manifest.WeightsHash {
		return fmt.Errorf("its hash is %.12s, the manifest says %.12s", hash, v.manifest.WeightsHash)
	}
	return nil
}

// checkDeadline verifies that the step of the found plan keeps the deadline.
func (v *verification) checkDeadline() error {
	s, err := cli.ReadJSON[record.Summary](filepath.Join(v.dir, record.SummaryFile))
	if err != nil {
		return err
	}
	step := s.MakespanS
	if s.ObjectiveSummary != nil && s.SteadyStepS != nil {
		step = *s.SteadyStepS
	}
	if cli.Seconds(step) > v.manifest.Options.Deadline {
		return fmt.Errorf("a step takes %s, and the run was to keep %s", cli.ShowTime(step), cli.ShortTime(v.manifest.Options.Deadline))
	}
	return nil
}
