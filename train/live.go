package train

import (
	"sync"
	"time"

	"dahl/execute"
	"dahl/nn"
	"dahl/platform"
)

// Live is how far a training is while it runs.
type Live struct {
	Epoch, Epochs int           // the one that runs, from 1, of how many
	Training      bool          // it goes through samples of the training set, else of the test set
	Step, Steps   int           // through this set in this epoch: done, of how many
	Loss          float64       // of the last training step
	Samples       int           // trained on since the training began or went on
	Trained       time.Duration // that they took
	Done          float64       // share of the operations of all epochs, from 0 to 1
	Devices       []LiveDevice
}

// LiveDevice is how long the units of a device have been in tasks since they took part; of devices
// other than processors in the steps that are recorded.
type LiveDevice struct {
	Name  string
	Units int
	Busy  time.Duration
}

// live is the progress of a training, noted by its lanes and its driver for callers of [Trainer.Live].
type live struct {
	mu       sync.Mutex
	now      Live            // but its devices
	runner   *execute.Runner // nil means that none runs
	platform *platform.Platform

	first, samples int       // of the piece that runs: steps of its set before it, and samples of a step
	before, ofStep float64   // likewise the share of the work
	since          time.Time // when it began
}

// Live says how far the training is. Any goroutine may ask at any time.
func (t *Trainer) Live() Live {
	l := &t.live
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now
	now.Trained += l.trainingFor()
	if l.runner == nil {
		return now
	}
	for i, busy := range l.runner.Busy() {
		if d := &l.platform.Devices[i]; !d.PlacedOnly {
			now.Devices = append(now.Devices, LiveDevice{d.Name, d.Count, busy})
		}
	}
	return now
}

// trainingFor is how long the piece has run, if it trains.
func (l *live) trainingFor() time.Duration {
	if !l.now.Training {
		return 0
	}
	return time.Since(l.since)
}

// use notes the runner of a leg. Nil means that it is about to be closed.
func (l *live) use(r *execute.Runner, p *platform.Platform) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runner, l.platform = r, p
}

// begin notes that a piece of the present segment begins.
func (l *live) begin(w *Workload, at *Progress) {
	order, graphs := w.epochOrder(), w.Program.Graphs
	training := func(i int) bool { return nn.IsTraining(graphs[order[i].Graph]) }
	work := func(i int) float64 { return max(1, graphs[order[i].Graph].TotalFlops()) } // of a step
	now := Live{Epoch: at.Epoch + 1, Epochs: w.Options.Epochs, Training: training(at.Segment)}
	ofEpoch, before, first := 0.0, work(at.Segment)*float64(at.Within), at.Within
	for i, s := range order {
		ofEpoch += work(i) * float64(s.Steps)
		if i < at.Segment {
			before += work(i) * float64(s.Steps)
		}
		if training(i) != now.Training {
			continue
		}
		if now.Steps += s.Steps; i < at.Segment {
			first += s.Steps
		}
	}
	all := ofEpoch * float64(w.Options.Epochs)
	l.mu.Lock()
	defer l.mu.Unlock()
	now.Loss, now.Samples, now.Step, now.Trained = l.now.Loss, l.now.Samples, first, l.now.Trained+l.trainingFor()
	l.since = time.Now()
	l.first, l.samples = first, nn.BatchOf(graphs[order[at.Segment].Graph])
	l.before, l.ofStep = (ofEpoch*float64(at.Epoch)+before)/all, work(at.Segment)/all
	now.Done = l.before
	l.now = now
}

// step notes the end of a step of the piece, from 0, and its loss.
func (l *live) step(step int, loss float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Step = min(l.first+step+1, l.now.Steps)
	l.now.Done = min(l.before+float64(step+1)*l.ofStep, 1)
	if l.now.Training {
		l.now.Loss = loss
		l.now.Samples += l.samples
	}
}
