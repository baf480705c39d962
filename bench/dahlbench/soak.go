package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/platform"
	"dahl/schedule"
	"dahl/train"
)

// soakOptions say what runs for long.
type soakOptions struct {
	model             string
	platform, devices string
	batch, workers    int
	steps             int
	policies          []string
}

const (
	// soakPiece is the number of steps of a run in the part that has many.
	soakPiece = 100
	// soakWarmup is the part of a run whose samples do not count.
	soakWarmup = 0.2
	// soakMemoryAllowance is how much memory may seem to grow over a run, in bytes:
	// the system counts resident memory in batches of pages for each thread, and Go's
	// runtime keeps records of its own.
	soakMemoryAllowance = 1 << 20
	soakInterval        = 10 * time.Millisecond
)

// rounding is what a line through equal numbers may rise.
const rounding = 1e-6

var errSoak = errors.New("something grows while training runs: see the table")

func newSoak() *cobra.Command {
	var o soakOptions
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "a long training, in which memory, goroutines and threads must not grow",
		Long: fmt.Sprintf(`soak trains for --steps steps under each policy: in one run, and in runs of %d
recorded steps. It samples the heap, the resident memory, goroutines and threads,
drops the first %.0f %%, and puts a line through the rest. Memory may rise by %d bytes
along that line over the run, threads by %.0f, goroutines not at all.`, soakPiece, 100*soakWarmup, soakMemoryAllowance, soakAllowed[3]),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.devices != "" && !cmd.Flags().Changed("workers") {
				o.workers = 0 // the list says how many
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "dahl-cnn", "network")
	f.IntVar(&o.batch, "batch", 32, "samples per step")
	f.StringVar(&o.platform, "platform", "", "platform `file`, such as emulated (default: this machine's processors)")
	f.StringVar(&o.devices, "devices", "", "devices of the platform, as for execute")
	f.IntVar(&o.workers, "workers", 2, "number of CPU cores, where --devices does not say")
	f.IntVar(&o.steps, "steps", 10_000, "steps of each part")
	f.StringSliceVar(&o.policies, "policies", []string{"heft", "eager"}, "policies")
	return cmd
}

func (o *soakOptions) run(ctx context.Context, stdout io.Writer) error {
	if o.steps < soakPiece {
		return cli.InputErrorf("--steps %d: want at least %d", o.steps, soakPiece)
	}
	err := cli.CheckNumbers("batch", o.batch)
	if err == nil && o.devices == "" {
		err = cli.CheckNumbers("workers", o.workers)
	}
	if err != nil {
		return err
	}
	m, d, err := network(o.model, 0)
	if err != nil {
		return err
	}
	p, err := o.machine()
	if err != nil {
		return err
	}
	var each []*train.Workload // by policy
	for _, policy := range o.policies {
		info, err := schedule.PolicyByName(policy)
		if err != nil {
			return cli.InputErrorf("--policies: %w", err)
		}
		w, err := train.New(m, d, p, train.Options{Batch: o.batch, Seed: 1, Policy: info, Devices: o.devices})
		if err != nil {
			return err
		}
		each = append(each, w)
	}
	fmt.Fprintf(stdout, "%s, batch %d, %d workers of %s\n\n", o.model, o.batch, len(p.Workers), p.Name)
	fmt.Fprintln(stdout, "| policy | steps | recorded | quantity | after warm-up | at the end | growth over the run | allowed | |")
	fmt.Fprintln(stdout, "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | --- |")
	flat := true
	for i, policy := range o.policies {
		for _, piece := range []int{o.steps, soakPiece} {
			samples, err := o.train(ctx, each[i], piece)
			if err != nil {
				return fmt.Errorf("policy %s: %w", policy, err)
			}
			recorded := "no"
			if piece < o.steps {
				recorded = fmt.Sprintf("in runs of %d", piece)
			}
			for q, name := range soakQuantities {
				first, last, growth := trend(samples, q)
				verdict := "flat"
				if growth > soakAllowed[q]+rounding {
					verdict, flat = "**grows**", false
				}
				fmt.Fprintf(stdout, "| %s | %d | %s | %s | %.0f | %.0f | %+.0f | %.0f | %s |\n",
					policy, o.steps, recorded, name, first, last, growth, soakAllowed[q], verdict)
			}
		}
	}
	if !flat {
		return errSoak
	}
	return nil
}

// machine is the one to train on.
func (o *soakOptions) machine() (*platform.Platform, error) {
	p, err := cli.Machine(o.platform, o.devices, false)
	if err == nil && o.devices != "" {
		p, err = p.Select(o.devices)
	}
	if err != nil {
		return nil, cli.AsInput(err)
	}
	return cli.WithWorkers(p, o.workers)
}

// train runs all steps, piece by piece, and returns what was sampled meanwhile.
func (o *soakOptions) train(ctx context.Context, w *train.Workload, piece int) ([]soakSample, error) {
	t, err := w.Start()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	order := train.Shuffled(w.Data.Train.Len(), o.batch*piece, w.Options.Seed)
	s, err := newSampler()
	if err != nil {
		return nil, err
	}
	defer s.status.Close()
	if piece == o.steps {
		stop := s.start()
		_, err = t.RunSteps(ctx, 0, piece, order, false)
		return s.samples, errors.Join(err, stop())
	}
	for done := 0; done < o.steps; done += piece {
		if _, err := t.RunSteps(ctx, 0, piece, order, true); err != nil {
			return nil, err
		}
		runtime.GC() // a schedule that nobody keeps is no growth
		if err := s.take(); err != nil {
			return nil, err
		}
	}
	return s.samples, nil
}

// soakQuantities is what is sampled; soakAllowed how much each may grow over a run.
// Go's runtime starts a thread now and then, for its own work or in place of one that
// waits in the system.
var (
	soakQuantities = [...]string{"heap, bytes", "resident, bytes", "goroutines", "threads"}
	soakAllowed    = [...]float64{soakMemoryAllowance, soakMemoryAllowance, 0, 2}
)

// soakSample is a value of each quantity at one moment.
type soakSample [len(soakQuantities)]float64

// sampler takes samples. Its memory is reserved beforehand, so that it is not what
// grows.
type sampler struct {
	status  *os.File
	text    []byte
	metrics []metrics.Sample
	samples []soakSample
}

// maxSoakSamples bounds a run to some hours.
const maxSoakSamples = 1 << 20

func newSampler() (*sampler, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("soak reads memory and threads from the system's /proc: %w", err)
	}
	return &sampler{status: status, text: make([]byte, 1<<14), samples: make([]soakSample, 0, maxSoakSamples),
		metrics: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}}, nil
}

// start takes samples at intervals until stop is called.
func (s *sampler) start() (stop func() error) {
	end, ended := make(chan struct{}), make(chan error)
	go func() {
		tick := time.NewTicker(soakInterval)
		defer tick.Stop()
		for {
			select {
			case <-end:
				ended <- nil
				return
			case <-tick.C:
				if err := s.take(); err != nil {
					<-end
					ended <- err
					return
				}
			}
		}
	}()
	return func() error {
		close(end)
		return <-ended
	}
}

func (s *sampler) take() error {
	metrics.Read(s.metrics)
	n, err := s.status.ReadAt(s.text, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the process's status: %w", err)
	}
	kib, threads := statusField(s.text[:n], "\nVmRSS:"), statusField(s.text[:n], "\nThreads:")
	if kib < 0 || threads < 0 {
		return errors.New("the process's status has no VmRSS or no Threads")
	}
	if len(s.samples) < maxSoakSamples {
		s.samples = append(s.samples, soakSample{float64(s.metrics[0].Value.Uint64()), float64(1024 * kib),
			float64(s.metrics[1].Value.Uint64()), float64(threads)})
	}
	return nil
}

// statusField is the number behind a key of /proc/PID/status, -1 for none.
func statusField(text []byte, key string) int {
	at := bytes.Index(text, []byte(key))
	if at < 0 {
		return -1
	}
	n := 0
	for _, c := range bytes.TrimLeft(text[at+len(key):], " \t") {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// trend puts a line through the samples of one quantity after warm-up, by least
// squares over their number, and returns where it begins and ends.
func trend(samples []soakSample, quantity int) (first, last, growth float64) {
	rest := samples[int(soakWarmup*float64(len(samples))):]
	if len(rest) < 2 {
		return math.NaN(), math.NaN(), math.Inf(1)
	}
	n := float64(len(rest))
	var sumX, sumY, sumXX, sumXY float64
	for i, s := range rest {
		x, y := float64(i), s[quantity]
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	first = (sumY - slope*sumX) / n
	growth = slope * (n - 1)
	return first, first + growth, growth
}
