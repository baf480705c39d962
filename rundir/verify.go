package rundir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan/certificate"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// Verify compares every file of a run with its manifest, which is refused where it is not as it was
// sealed. It names what is damaged, missing, or in the directory without being the run's.
func Verify(dir string) error {
	var h Head
	if err := read(dir, &h); err != nil {
		return err
	}
	var found []error
	d, err := durable.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, f := range h.Files {
		if err := f.verify(d); err != nil {
			found = append(found, fmt.Errorf("damaged: %s: %w", f.Name, err))
		}
	}
	err = fs.WalkDir(d.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == stagingName || name == commitName || name == addingName || name == checkpointsName && filepath.Base(dir) == stagingName):
			return fs.SkipDir
		case !e.IsDir() && name != ManifestName && name != lockName && !h.Lists(name):
			found = append(found, fmt.Errorf("%s is not the run's: its manifest does not list it", name))
		}
		return nil
	})
	return errors.Join(append(found, err)...)
}

// verify compares the file of a name with what the manifest says of it.
func (h *Head) verify(d *durable.Dir, name string) error {
	i := h.index(name)
	if i < 0 {
		return errors.New("the manifest does not list it")
	}
	return h.Files[i].verify(d)
}

// verify compares one file with what the manifest says.
func (f *File) verify(d *durable.Dir) error {
	if info, err := d.Lstat(f.Name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file")
	}
	file, err := d.Open(f.Name)
	if err != nil {
		return durable.Cause(err)
	}
	defer file.Close()
	got, err := hashFile(file, f.Name)
	switch {
	case err != nil:
		return durable.Cause(err)
	case got.Bytes != f.Bytes:
		return fmt.Errorf("it has %d bytes, the manifest says %d", got.Bytes, f.Bytes)
	case got.SHA256 != f.SHA256:
		return fmt.Errorf("its hash is %.12s, the manifest says %.12s", got.SHA256, f.SHA256)
	}
	return nil
}

// Claims are the statements of a manifest about the results of its run.
type Claims struct {
	*Head
	PlatformSHA256, GraphSHA256 string

	Target schedule.Target
	Policy schedule.Policy // nil means that the run followed its plan
}

// Unchecked is the error of a check that is left out, and says why.
type Unchecked string

func (u Unchecked) Error() string { return string(u) }

// VerifyResults derives again what the results of a run claim. It calls check for each claim, in
// the order of their dependences; check reports whether the claim holds. Claims that depend on a
// wrong one are left out.
func VerifyResults(dir string, c *Claims, check func(what string, err error) bool) {
	v := &verification{Claims: c, Loaded: Loaded{dir: dir}, check: check}
	p, err := v.platform()
	soundPlatform := check(PlatformFile, err)
	g, err := v.graph()
	if !check(GraphFile, err) || !soundPlatform {
		return
	}
	if !check(PlanFile, v.decide(g, p, c.Target)) {
		return
	}
	v.checkLayout()
	for _, name := range []string{ScheduleFile, PredictedFile} {
		if v.Lists(name) {
			v.checkSchedule(name)
		}
	}
}

// ReadCertificate reads the proof of a plan's bound.
func ReadCertificate(dir string) (*certificate.Certificate, error) {
	return ReadAs(filepath.Join(dir, CertificateFile), func(f io.Reader, _ string) (*certificate.Certificate, error) { return certificate.Read(f) })
}

// verification checks the results of one run.
type verification struct {
	*Claims
	Loaded
	check func(what string, err error) bool
}

// sameHash compares a hash with the manifest's.
func sameHash(got, want string) error {
	if got != want {
		return fmt.Errorf("its hash is %.12s, the manifest says %.12s", got, want)
	}
	return nil
}

func (v *verification) platform() (*platform.Platform, error) {
	p, err := platform.Load(filepath.Join(v.dir, PlatformFile))
	if err != nil {
		return nil, err
	}
	return p, cmp.Or(p.Check(), sameHash(p.Hash(), v.PlatformSHA256))
}

func (v *verification) graph() (*dag.Graph, error) {
	g, err := ReadAs(filepath.Join(v.dir, GraphFile), dag.ReadJSON)
	if err != nil {
		return nil, err
	}
	return g, cmp.Or(g.Check(), sameHash(g.Hash(), v.GraphSHA256))
}

// maxLayoutTasks bounds the graphs whose memory is checked: the check walks two
// steps from every task.
const maxLayoutTasks = 20_000

// checkLayout verifies the places that the plan lists.
func (v *verification) checkLayout() {
	origin, pg := &v.Decision.Graphs[0].Problem, v.Decision.Graphs[0].Placed
	if v.Plan.Places == nil || pg == nil {
		return
	}
	g, err := pg.Graph()
	if err != nil {
		v.check("layout", err)
		return
	}
	for m, l := range v.Decision.Layouts(0) {
		all := *l
		all.Reuse, all.ReuseNext = pg.Reuse, pg.Orders()[1]
		what := "layout"
		if origin.Platform.Spread() {
			what += " of " + origin.Platform.Memories[m].Name
		}
		if origin.Graph.NumTasks() > maxLayoutTasks {
			v.check(what, Unchecked(fmt.Sprintf("more than %d tasks", maxLayoutTasks)))
			continue
		}
		v.check(what, all.Check(g))
	}
}

// decidesLater reports whether the run decided at run time. Its plan then only records the decisions.
func (v *verification) decidesLater() bool {
	return v.Policy != nil && v.Decision.Priced.DecidesLater(v.Policy)
}

// checkFollowed verifies that a schedule follows the plan, where the plan was made before it.
func (v *verification) checkFollowed(s *schedule.Schedule, p *schedule.Problem) error {
	if v.decidesLater() {
		return nil
	}
	if err := audit.Follows(s, p, v.Plan); err != nil {
		return err
	}
	return audit.FollowsTransfers(s, v.Decision.Placed, 0)
}

// checkSchedule checks one schedule; the energy file belongs to the run's own.
func (v *verification) checkSchedule(name string) {
	s, err := v.readSchedule(name)
	if err != nil {
		v.check(name, err)
		return
	}
	p := v.Decision.Problem(0, s.Steps, false)
	if v.decidesLater() {
		p.Plan = nil // as in the run, whose period no list of a worker bounds
	}
	err = audit.Check(s, p)
	if err == nil { // of a schedule that is refused no steps are unrolled
		err = v.checkFollowed(s, p)
	}
	if v.check(name, err) && name == ScheduleFile {
		v.check(EnergyFile, v.checkEnergy(s, p))
	}
}

// checkEnergy integrates the powers over the schedule again. Only the model is derived again, since
// readings of meters cannot be.
func (v *verification) checkEnergy(s *schedule.Schedule, p *schedule.Problem) error {
	report, err := energy.FromSchedule(s, p)
	if err == nil && s.World == schedule.Simulated {
		err = report.CheckCaps()
	}
	if err != nil {
		return err
	}
	kept, err := v.Energy()
	if err != nil {
		return err
	}
	var compared []string
	for i := range kept.Metered {
		compared = append(compared, kept.Metered[i].Of)
	}
	report.AddReadings(p.Platform, kept.Readings, compared)
	// Nobody can derive these, either.
	report.Epoch, report.FirstStep, report.Meters = kept.Epoch, kept.FirstStep, kept.Meters
	want, err := json.Marshal(report)
	if err != nil {
		return err
	}
	data, err := ReadAs(filepath.Join(v.dir, EnergyFile), All)
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
