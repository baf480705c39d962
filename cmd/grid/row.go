package grid

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/experiment"
	"dahl/schedule/place"
)

// ReadRow reads the run of a cell of an experiment, whose command line it has to have.
func ReadRow(c *experiment.Cell, args []string, by *Manifest, dir string) experiment.Row {
	missing := experiment.NewRow(c, experiment.Missing, "")
	m := new(record.Manifest)
	if err := rundir.Open(dir, m); err != nil || !m.Complete && !m.Ended() || !slices.Equal(m.Args, args) {
		return missing
	}
	if m.Ended() {
		return experiment.NewRow(c, experiment.Failed, m.Diverged.What())
	}
	summaryPath, platformPath := filepath.Join(dir, record.SummaryFile), filepath.Join(dir, rundir.PlatformFile)
	if changed, err := rundir.Changed(dir, m); err != nil || slices.Contains(changed, summaryPath) || slices.Contains(changed, platformPath) {
		return missing
	}
	s, err := cli.ReadJSON[record.Summary](summaryPath)
	if err != nil {
		return missing
	}
	p, err := platform.Load(platformPath)
	if err != nil {
		return missing
	}
	row := experiment.NewRow(c, experiment.OK, "")
	if m.Build != by.Build {
		row.Reason = fmt.Sprintf("made by commit %s", m.Build.Commit)
	}
	FillTimes(&row, s)
	FillJoules(&row, s, p, by)
	fillUse(&row, s, p)
	if s.Trained != nil && s.Trained.ResumedAfterStep > 0 {
		row.Reason = fmt.Sprintf("it went on after step %d; times are of the rest, and there are no joules of all of it", s.Trained.ResumedAfterStep)
		for _, column := range []experiment.Column{experiment.Joules, experiment.JoulesPerEpoch, experiment.JoulesAboveIdle, experiment.JoulesError} {
			row.Set(column, math.NaN())
		}
	}
	return row
}

// FillTimes sets times, losses and accuracies.
func FillTimes(row *experiment.Row, s *record.Summary) {
	if s.StepS > 0 {
		row.Set(experiment.StepTime, s.StepS)
	}
	row.Set(experiment.RunTime, s.MakespanS)
	if s.SamplesPerS != nil {
		row.Set(experiment.Rate, *s.SamplesPerS)
	}
	if s.TrainingLoss != nil {
		row.Set(experiment.Loss, float64(*s.TrainingLoss))
	}
	if s.TestAccuracy != nil {
		row.Set(experiment.Accuracy, 100**s.TestAccuracy)
	}
	if o := s.ObjectiveSummary; o != nil {
		row.Set(experiment.Gap, 100*float64(o.Gap))
	}
	if of := s.Strategy; of != nil {
		row.Set(experiment.ModelTime, of.ModelS*float64(of.Minibatches))
	}
	if w := s.Work; w != nil {
		row.Set(experiment.Tasks, float64(w.Tasks))
		row.Set(experiment.TouchedBytes, float64(w.Bytes))
		row.Set(experiment.Tail, 100*w.Tail)
		if w.Waves > 0 {
			row.Set(experiment.Waves, float64(w.Waves))
		}
	}
	if s.Trained != nil && s.Trained.PredictedStepS > 0 {
		row.Set(experiment.PredictedStep, s.Trained.PredictedStepS)
	}
}

// FillJoules sets the joules and says what they rest on: on meters where they cover all devices, else
// on the powers of the platform file.
func FillJoules(row *experiment.Row, s *record.Summary, p *platform.Platform, by *Manifest) {
	e := &s.EnergyJ
	measured := record.Covers(e.Readings, p)
	if row.JoulesSource = e.Grounds; !measured && e.Basis == energy.Unavailable {
		return
	}
	joules := e.Total
	if measured {
		joules = fillMetered(row, e.Readings, by)
	}
	row.Set(experiment.Joules, joules)
	if s.Trained != nil {
		row.Set(experiment.JoulesPerEpoch, joules/float64(s.Trained.Epochs))
	}
	if e.PerSample > 0 {
		row.Set(experiment.JoulesPerSample, e.PerSample)
		if s.Trained == nil && s.EpochSamples > 0 {
			row.Set(experiment.JoulesPerEpoch, e.PerSample*float64(s.EpochSamples))
		}
	}
}

// fillMetered sets the columns that need meters, and returns the sum of all meters in joules.
func fillMetered(row *experiment.Row, readings []meter.Reading, by *Manifest) (joules float64) {
	var sources []string
	unsure, idle := 0.0, 0.0 // idle is NaN where some meter was not read while nothing ran
	for _, of := range readings {
		sources = append(sources, of.Of+" by "+of.Meter)
		joules, unsure = joules+of.Joules, unsure+of.ErrorJoules
		idle += by.IdleWatts(&of) * of.Seconds
	}
	row.JoulesSource = "measured: " + strings.Join(sources, ", ")
	row.Set(experiment.JoulesError, unsure)
	row.Set(experiment.JoulesAboveIdle, joules-idle)
	return joules
}

// fillUse sets how busy the machine was, and the memory.
func fillUse(row *experiment.Row, s *record.Summary, p *platform.Platform) {
	processors, others := share{}, share{}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.PlacedOnly {
			continue
		}
		if of := &others; d.IsProcessor() {
			processors.add(s.Busy[d.Name], d.Count)
		} else {
			of.add(s.Busy[d.Name], d.Count)
		}
	}
	row.Set(experiment.GPUShare, others.percent())
	if s.Trained == nil {
		row.Set(experiment.CPUShare, processors.percent())
		fillPlanned(row, s, p)
		return
	}
	if l := s.Load; l != nil && l.OwnCores > 0 && processors.units > 0 {
		row.Set(experiment.CPUShare, 100*l.OwnCores/float64(min(processors.units, l.Cores)))
		row.Set(experiment.OtherCores, l.OtherCores)
	}
	if s.Trained.PeakBytes > 0 {
		row.Set(experiment.PeakMemory, float64(s.Trained.PeakBytes))
		row.MemorySource = "largest resident set of the process"
	}
}

// fillPlanned sets the memory and the transfers of a simulated run.
func fillPlanned(row *experiment.Row, s *record.Summary, p *platform.Platform) {
	planned := func(memory string) int64 { return max(s.LivePeakBytes[memory], s.ReservedBytes[memory]) }
	var all, processors, others int64
	for memory := range s.LivePeakBytes {
		all += planned(memory)
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		most := &others
		if d.IsProcessor() {
			most = &processors
		}
		*most = max(*most, planned(p.Memories[d.Memory].Name))
	}
	row.Set(experiment.PeakMemory, float64(all))
	row.Set(experiment.FullestDevice, float64(cmp.Or(others, processors)))
	row.MemorySource = "planned, of all memories"
	moved := s.BytesMoved - s.TransfersByReason[place.ReasonEnter].Bytes - s.TransfersByReason[place.ReasonLeave].Bytes
	row.Set(experiment.BytesMoved, float64(moved)/float64(s.Steps))
}

// share is how busy some units are together.
type share struct {
	busy  float64
	units int
}

func (s *share) add(busy float64, units int) {
	s.busy, s.units = s.busy+busy*float64(units), s.units+units
}

// percent is NaN where there are no units.
func (s *share) percent() float64 { return 100 * s.busy / float64(s.units) }
