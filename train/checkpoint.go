package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/npz"
	"dahl/platform/quantity"
)

// Checkpoint is a training between two steps, complete enough to go on to the same weights on
// any machine: parameters, optimiser state, and how far it has come. The generators need no more,
// since they count: the order of an epoch follows from the seed and the epoch alone.
type Checkpoint struct {
	Progress
	Method string `json:"method"` // [nn.Defaults] of the training as text
	// Note is the caller's, such as the lengths of files that grow with the training.
	Note json.RawMessage `json:"note,omitempty"`

	state []npz.Array
}

// Progress is how far a training has come.
type Progress struct {
	Steps   int `json:"steps"`   // training steps done, from the start
	Epoch   int `json:"epoch"`   // that goes on or comes next, from 0
	Segment int `json:"segment"` // of the epoch's order in the program, from 0
	Within  int `json:"within"`  // steps of the segment that are done

	Trained tally `json:"trained"` // of the epoch so far
	Tested  tally `json:"tested"`

	Losses   []DeviceLoss `json:"losses,omitempty"`   // devices that the training went on without
	Diverged *Divergence  `json:"diverged,omitempty"` // first loss that was not finite
}

// CheckpointEvery says how often a training is saved. The zero value is every minute, or less
// often where saving takes more than a hundredth of the time, so that it costs less than 1 %.
type CheckpointEvery struct {
	Steps   int           // number of training steps between two checkpoints; zero means by time
	Time    time.Duration // zero means the default
	AtBegin bool          // also before the first step
}

// Saving counts the checkpoints of a training and their time.
type Saving struct {
	Count int
	Drain time.Duration // from the time at which one was due until all workers rested
	Write time.Duration
}

const (
	defaultCheckpointTime = time.Minute
	// checkpointShare is how many times longer than a checkpoint the steps between two of them
	// take, by default.
	checkpointShare = 100
)

// period is the time between two checkpoints, after one that took some time. Zero means that
// they do not come by time.
func (e CheckpointEvery) period(took time.Duration) time.Duration {
	if e.Steps > 0 {
		return 0
	}
	return cmp.Or(e.Time, max(defaultCheckpointTime, checkpointShare*took))
}

// ParseCheckpointEvery reads "100steps" or "5min", with or without a space before the unit.
func ParseCheckpointEvery(text string) (e CheckpointEvery, err error) {
	counted := false
	if e.Steps, counted = naming.ParseCount(text, "step"); !counted {
		e.Time, err = quantity.ParseTime(text)
	}
	if err != nil || e.Steps < 0 || e.Time < 0 || e == (CheckpointEvery{}) {
		return CheckpointEvery{}, inputErrorf("write steps or a time, such as 100steps or 5min")
	}
	return e, nil
}

// progressArray is the name of the array that holds the progress as JSON.
const progressArray = "dahl.progress"

// Encode writes a checkpoint as an .npz file: the state by name, and the progress as JSON in an
// array of bytes.
func (c *Checkpoint) Encode(w io.Writer) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the progress of a training: %w", err)
	}
	progress := npz.Array{Name: progressArray, Type: dag.Uint8, Shape: []int{len(text)}, Data: text}
	return npz.Encode(w, append(c.state[:len(c.state):len(c.state)], progress))
}

// DecodeCheckpoint reads a checkpoint from a file of some size, the inverse of Encode.
func DecodeCheckpoint(r io.ReaderAt, size int64) (*Checkpoint, error) {
	arrays, err := npz.Decode(r, size, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(arrays, func(a npz.Array) bool { return a.Name == progressArray })
	if i < 0 {
		return nil, fmt.Errorf("no array %q: this is no checkpoint of a training", progressArray)
	}
	c := &Checkpoint{state: slices.Delete(slices.Clone(arrays), i, i+1)}
	if err := json.Unmarshal(arrays[i].Data, c); err != nil {
		return nil, fmt.Errorf("array %q: %w", progressArray, err)
	}
	return c, nil
}

// Resume starts a training where a checkpoint left it. The program may be lowered and planned in
// another way, for another machine or more epochs: model, data, batch and optimiser have to be
// the same as in the checkpoint. Steps and Epochs of the trainer begin with what it does
// itself.
func (w *Workload) Resume(c *Checkpoint) (*Trainer, error) {
	if err := w.follows(c); err != nil {
		return nil, asInput(fmt.Errorf("the checkpoint after step %d: %w", c.Steps, err))
	}
	t, err := w.Start()
	if err != nil {
		return nil, err
	}
	stateCopy(c.state).restore(t.Runner)
	t.at, t.Diverged, t.resumed = c.Progress, c.Diverged, true
	t.feed.stepsDone, t.saved = c.Steps, c.Progress
	return t, nil
}

// follows reports why the program does not go on from a checkpoint.
func (w *Workload) follows(c *Checkpoint) error {
	want := stateOf(w.Program)
	for _, a := range want {
		i := slices.IndexFunc(c.state, func(b npz.Array) bool { return b.Name == a.Name })
		switch {
		case i < 0:
			return fmt.Errorf("it has no %q; the network or the optimiser is another", a.Name)
		case c.state[i].Type != a.Type || !slices.Equal(c.state[i].Shape, a.Shape):
			b := &c.state[i]
			return fmt.Errorf("its %q is %v of shape %v, that of the network %v of shape %v", a.Name, b.Type, b.Shape, a.Type, a.Shape)
		}
	}
	if len(want) != len(c.state) {
		return fmt.Errorf("it has %d arrays, and the network and its optimiser carry %d; they are others", len(c.state), len(want))
	}
	if method := w.Method().String(); c.Method != method {
		return fmt.Errorf("it is of a training by %q, and this one is by %q", c.Method, method)
	}
	return w.reaches(&c.Progress)
}

// reaches reports why the program never comes to a progress.
func (w *Workload) reaches(p *Progress) error {
	order, g := w.epochOrder(), w.Program.Graphs
	bad := p.Epoch < 0 || p.Segment < 0 || p.Segment > 0 && p.Segment >= len(order) || p.Within < 0 || p.Within > order[max(0, p.Segment)].Steps
	if bad || p.Epoch == w.Options.Epochs && p.Segment+p.Within > 0 {
		return errors.New("its position is none of the program; it is damaged, or the data or the batch are others")
	}
	if p.Epoch > w.Options.Epochs {
		return fmt.Errorf("it is in epoch %d, and the training has %d", p.Epoch+1, w.Options.Epochs)
	}
	steps, trained, tested := 0, 0, 0
	for i, s := range order {
		done := 0 // of the epoch
		switch {
		case i < p.Segment:
			done = s.Steps
		case i == p.Segment:
			done = p.Within
		}
		if samples := done * nn.BatchOf(g[s.Graph]); nn.IsTraining(g[s.Graph]) {
			steps, trained = steps+p.Epoch*s.Steps+done, trained+samples
		} else {
			tested += samples
		}
	}
	if steps != p.Steps {
		return fmt.Errorf("its position is that of step %d in this program; the data or the batch are others", steps)
	}
	if p.Trained.Samples != trained || p.Tested.Samples != tested {
		return fmt.Errorf("it counts %d samples of its epoch in the training and %d in the test, and its position has %d and %d; it is damaged", p.Trained.Samples, p.Tested.Samples, trained, tested)
	}
	return nil
}

// save makes a checkpoint of the training as it is, unless no step was done since the last one.
func (t *Trainer) save() error {
	if last := &t.saved; t.OnCheckpoint == nil || t.Saving.Count > 0 && last.Epoch == t.at.Epoch && last.Segment == t.at.Segment && last.Within == t.at.Within {
		return nil
	}
	begin := time.Now()
	c := &Checkpoint{Progress: t.at, Method: t.Workload.Method().String(), state: stateOf(t.Workload.Program)}
	c.Steps, c.Diverged, c.Losses = t.feed.stepsDone, t.Diverged, slices.Concat(t.at.Losses, t.Losses)
	for i := range c.state {
		c.state[i].Data = stateIn(t.Runner, c.state[i].Name)
	}
	if err := t.OnCheckpoint(c); err != nil {
		return fmt.Errorf("keeping a checkpoint after step %d: %w", c.Steps, err)
	}
	t.saved, t.savedAt = c.Progress, time.Now()
	t.saveTook = t.savedAt.Sub(begin)
	t.Saving.Count++
	t.Saving.Write += t.saveTook
	return nil
}

// saveWhenDue makes a checkpoint where it is time for one.
func (t *Trainer) saveWhenDue() error {
	if every := t.Workload.Options.Checkpoint; every.Steps > 0 && t.feed.stepsDone-t.saved.Steps < every.Steps || time.Until(t.nextSave()) > 0 {
		return nil
	}
	return t.save()
}

// nextSave is the time at which a checkpoint is due; in the past where they do not come by time.
func (t *Trainer) nextSave() time.Time {
	return t.savedAt.Add(t.Workload.Options.Checkpoint.period(t.saveTook))
}

// untilSaved is a context that ends when a run is to end at a step: the training is to end, or a
// checkpoint is due.
func (t *Trainer) untilSaved() (context.Context, context.CancelFunc) {
	if t.OnCheckpoint == nil || t.Workload.Options.Checkpoint.Steps > 0 {
		return context.WithCancel(t.enough)
	}
	return context.WithDeadline(t.enough, t.nextSave())
}

// exact is a number that JSON keeps as it is, also where it is not finite.
type exact float64

// MarshalText writes the shortest decimal that reads back as the same number.
func (v exact) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

// UnmarshalText is the inverse of MarshalText.
func (v *exact) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*v = exact(x)
	return err
}
