package peer

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"dahl/energy/meter"
	"dahl/execute/host"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/train"
	"dahl/train/metrics"
)

// Job is a training by another program.
type Job struct {
	// Workload is the training: its network, first weights, order of samples and device.
	Workload *train.Workload
	Program  Program
	Python   string // interpreter
	Setting  string // [Best], the name of a setting, or one with its format, as "tuned: channels_last"
	// Idle is the time for which meters are read before the training, while nothing runs. Zero means not at all.
	Idle time.Duration

	OnEpoch func(metrics.Epoch) // nil means that nobody listens
	Meters  func() Meters       // nil means the meters of this machine
}

// Result is the outcome of a training by another program.
type Result struct {
	Program  string     `json:"program"`
	Setting  string     `json:"setting"`
	Format   string     `json:"format"`
	Versions Versions   `json:"versions"`
	Searched []Searched `json:"searched,omitempty"` // where settings were tried, the fastest first

	Device  string `json:"device"`
	Threads int    `json:"threads"`
	// Epochs have no accuracy of the training samples: it is NaN.
	Epochs []metrics.Epoch `json:"-"`
	Steps  []metrics.Step  `json:"-"` // their number of correct samples, which is not counted, is -1
	// LossError is the largest difference of the first losses from dahl's, as a fraction.
	LossError float64 `json:"loss_error"`

	Seconds    float64   `json:"seconds"`     // of all steps and evaluations
	CPUSeconds float64   `json:"cpu_seconds"` // of the process meanwhile, all threads together
	PeakBytes  int64     `json:"peak_bytes"`  // of the process, from its start
	Energy     Energy    `json:"energy"`
	Load       host.Load `json:"-"` // of others meanwhile
}

// CPUShare is how busy the process kept the cores that it had threads for, as a fraction.
func (r *Result) CPUShare() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return r.CPUSeconds / (r.Seconds * float64(r.Threads))
}

// Training is a training by another program that may begin: it is compiled, and has the first weights.
type Training struct {
	Result Result

	job    Job
	dir    string // of the worker's files
	worker *Worker
}

// Prepare makes a training ready. Close ends what it starts.
func Prepare(ctx context.Context, j Job) (*Training, error) {
	if j.Meters == nil {
		j.Meters = StartMeters(j.Workload.Platform)
	}
	twin, err := Describe(j.Workload)
	if err != nil {
		return nil, err
	}
	tried, err := variantsOf(&j, twin)
	if err != nil {
		return nil, err
	}
	t := &Training{job: j, Result: Result{Program: j.Program.Name, Device: twin.Device, Threads: twin.Threads}}
	if t.dir, err = os.MkdirTemp("", "dahl-peer-"); err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, twin, tried); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close ends the process of the program and removes its files.
func (t *Training) Close() {
	if t.worker != nil {
		t.worker.Close()
	}
	// What is left of a directory for temporary files is the system's to remove.
	_ = os.RemoveAll(t.dir)
}

// prepare finds the setting, starts the program in it, and compares its first losses with dahl's.
func (t *Training) prepare(ctx context.Context, twin *Twin, tried []variant) error {
	j, r := &t.job, &t.Result
	if err := Unpack(t.dir); err != nil {
		return fmt.Errorf("unpacking the worker of %s: %w", j.Program, err)
	}
	order := orderOf(j.Workload, j.Workload.Data.Train.Len(), 0)
	first, err := oursOf(ctx, j.Workload, order)
	if err != nil {
		return err
	}
	if r.Searched, err = search(ctx, j, twin, tried, t.dir, first); err != nil {
		return err
	}
	v := tried[0]
	if len(r.Searched) > 0 {
		v = r.Searched[0].variant
	}
	if err := twin.Export(t.dir, first.weights, j.Workload, 0); err != nil {
		return err
	}
	r.Setting, r.Format = v.setting.Name, v.format
	if t.worker, r.Versions, err = Start(ctx, t.dir, j.Python, j.Program, v.setting, twin.Device, twin.Threads); err != nil {
		return err
	}
	if err := t.worker.Open(twin, v.format, true); err != nil {
		return ended(ctx, err)
	}
	ready, err := t.worker.ask(request{Do: "ready", Format: v.format, Steps: len(first.losses), Rates: ratesOf(j.Workload, 0)})
	if err != nil {
		return ended(ctx, err)
	}
	r.LossError, err = SameLosses(r.Versions.Program, first.losses, ready.Losses, LossBound(&j.Workload.Options), func() ([]float64, error) {
		return LossBounds(ctx, j.Workload, order, first.losses)
	})
	return err
}

// Run trains between the readings of the meters. With an error in a later epoch, the result covers the
// epochs before it.
func (t *Training) Run(ctx context.Context) error {
	r := &t.Result
	err := r.meter(ctx, &t.job, func() error {
		load := host.StartLoad(t.worker.PID())
		err := r.epochs(&t.job, t.worker, r.Format)
		r.Load = load.Load()
		return err
	})
	if err != nil {
		return ended(ctx, err)
	}
	return nil
}

// meter reads the meters while nothing runs, where there are some, and then while the program trains.
func (r *Result) meter(ctx context.Context, j *Job, train func() error) error {
	first := j.Meters()
	_, err := first.Stop()
	if err != nil {
		return err
	}
	if first.Empty() {
		r.Energy.Meters = first.MeterStates()
		r.Energy.Unavailable = whyUnavailable(r.Energy.Meters)
		return train()
	}
	if j.Idle > 0 {
		r.Energy.Idle, _, err = Window(j.Meters, func() error {
			select {
			case <-time.After(j.Idle):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			return err
		}
	}
	r.Energy.Readings, r.Energy.Meters, err = Window(j.Meters, train)
	if doubt := meter.Doubt(r.Energy.Meters); doubt != nil {
		r.Energy.Unavailable = doubt.Error()
	}
	return err
}

// epochs trains, and tests after every epoch where there is a test.
func (r *Result) epochs(j *Job, w *Worker, format string) error {
	work := j.Workload
	for epoch := range work.Options.Epochs {
		rates := ratesOf(work, epoch)
		trained, err := w.ask(request{Do: "epoch", Format: format, Epoch: epoch, Rates: rates})
		if err != nil {
			return err
		}
		m, err := r.addEpoch(work, epoch, len(rates), trained)
		if err != nil {
			return err
		}
		if test := work.Data.Test; test != nil {
			tested, err := w.ask(request{Do: "test", Format: format})
			if err != nil {
				return err
			}
			if len(tested.Losses) != 1 {
				return fmt.Errorf("%s gave %d losses of a test", w.Program, len(tested.Losses))
			}
			r.spent(tested)
			m.Tested, m.TestLoss, m.TestAccuracy = true, tested.Losses[0], float64(tested.Correct)/float64(test.Len()*nn.Elems(test.Positions))
		}
		r.Epochs = append(r.Epochs, m)
		if j.OnEpoch != nil {
			j.OnEpoch(m)
		}
	}
	return nil
}

// ratesOf are the learning rates of the steps of an epoch, counted from 0.
func ratesOf(w *train.Workload, epoch int) []float64 {
	rates := make([]float64, data.BatchCount(w.Data.Train.Len(), w.Options.Batch))
	method := w.Method()
	rate := method.Schedule.Rates(method.Optimizer.Rate(), len(rates))
	for i := range rates {
		rates[i] = rate(epoch*len(rates) + i)
	}
	return rates
}

// addEpoch notes what an epoch came to.
func (r *Result) addEpoch(w *train.Workload, epoch, steps int, trained reply) (m metrics.Epoch, err error) {
	n, batch := w.Data.Train.Len(), w.Options.Batch
	if len(trained.Losses) != steps {
		return m, fmt.Errorf("%s gave %d losses of %d steps", r.Program, len(trained.Losses), steps)
	}
	m = metrics.Epoch{Epoch: epoch + 1, Accuracy: math.NaN(), Steps: steps, Samples: n, Seconds: trained.Seconds}
	for i, loss := range trained.Losses {
		samples := min(batch, n-i*batch)
		m.Loss += float64(loss*float64(samples)) / float64(n)
		r.Steps = append(r.Steps, metrics.Step{Epoch: epoch + 1, Step: epoch*steps + i + 1, Samples: samples, Loss: loss, Correct: -1})
	}
	r.spent(trained)
	return m, nil
}

// spent adds up what a request took.
func (r *Result) spent(a reply) {
	r.Seconds += a.Seconds
	r.CPUSeconds += a.CPUSeconds
	r.PeakBytes = a.PeakBytes
}
