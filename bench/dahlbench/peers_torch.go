package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/kernels"
	"dahl/nn"
)

// torchSetting is an environment under which PyTorch is measured.
type torchSetting struct {
	name, doc string
	env       []string
	oneBLAS   bool   // keep OpenBLAS to one thread where OpenMP has several
	compile   string // mode of torch.compile; "": eager
}

// The malloc thresholds keep freed memory in the process, so that a step does not
// fault its buffers in again.
var (
	noTrim = []string{"MALLOC_TRIM_THRESHOLD_=4000000000", "MALLOC_MMAP_THRESHOLD_=4000000000"}
	bound  = []string{"OMP_PROC_BIND=true"}
	avx512 = []string{"ATEN_CPU_CAPABILITY=avx512"}
)

// torchSettings are all that are tried. A PyTorch whose OpenBLAS has threads of its
// own beside those of OpenMP has more threads than cores, all of which spin; then
// one thread of OpenBLAS may be faster, and is far steadier.
var torchSettings = []torchSetting{
	{name: "default", doc: "as a user starts it"},
	{name: "default, one BLAS thread", doc: "default, with OPENBLAS_NUM_THREADS=1", oneBLAS: true},
	{name: "tuned", doc: "no-trim malloc, bound OpenMP threads", env: slices.Concat(noTrim, bound)},
	{name: "tuned, one BLAS thread", doc: "tuned, with OPENBLAS_NUM_THREADS=1", env: slices.Concat(noTrim, bound), oneBLAS: true},
	{name: "avx512", doc: "tuned, with ATEN_CPU_CAPABILITY=avx512", env: slices.Concat(noTrim, bound, avx512)},
	{name: "avx512, one BLAS thread", doc: "avx512, with OPENBLAS_NUM_THREADS=1", env: slices.Concat(noTrim, bound, avx512), oneBLAS: true},
	{name: "avx512 unbound, one BLAS thread", doc: "the same without bound threads", env: slices.Concat(noTrim, avx512), oneBLAS: true},
}

// torchGPUSettings are those on a GPU, where threads and memory of the host matter less.
var torchGPUSettings = []torchSetting{
	{name: "eager", doc: "cuDNN's algorithms by trial, the optimiser fused"},
	{name: "compiled", doc: "the same by torch.compile", compile: "default"},
	{name: "compiled with graphs", doc: `the same by torch.compile(mode="reduce-overhead"), which replays CUDA graphs`, compile: "reduce-overhead"},
}

func (s torchSetting) String() string { return s.name }

// settingsOn are all on a device.
func settingsOn(device string) []torchSetting {
	if device == kernels.CUDA {
		return torchGPUSettings
	}
	return torchSettings
}

// settingsFor are those of some names that differ on a unit; without names all.
func settingsFor(u peerUnit, wanted []string) []torchSetting {
	return slices.DeleteFunc(slices.Clone(settingsOn(u.Device)), func(s torchSetting) bool {
		return s.oneBLAS && u.Threads == 1 || len(wanted) > 0 && !slices.Contains(wanted, s.name)
	})
}

// workerProgram trains and evaluates a network in PyTorch at the requests on its standard
// input; its first lines say which.
//
//go:embed torch_worker.py
var workerProgram []byte

// torchWorker runs it.
type torchWorker struct {
	setting torchSetting
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
}

// torchRequest and torchReply are the lines of the worker's protocol, which its
// first comment describes.
type torchRequest struct {
	Do           string `json:"do"`
	ChannelsLast bool   `json:"channels_last"`
	Mode         string `json:"mode,omitempty"`
	Steps        int    `json:"steps"`
	Warmup       int    `json:"warmup"`

	Threads   int          `json:"threads,omitempty"`
	Device    string       `json:"device,omitempty"`
	TF32      bool         `json:"tf32,omitempty"`
	Compile   string       `json:"compile,omitempty"`
	First     bool         `json:"first,omitempty"` // of a cell: the networks of the last one go
	Batch     int          `json:"batch,omitempty"`
	Layers    []torchLayer `json:"layers,omitempty"`
	Divisor   float64      `json:"divisor,omitempty"`
	Optimizer *nn.SGD      `json:"optimizer,omitempty"`
	Weights   string       `json:"weights,omitempty"`
	Data      string       `json:"data,omitempty"`
}

type torchLayer struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	In       []int    `json:"in"`
	Settings nn.Layer `json:"settings"`
}

type torchReply struct {
	Error   string    `json:"error"`
	Values  []float64 `json:"values"`
	Seconds float64   `json:"seconds"`

	torchVersion
}

// torchVersion is what a worker says of itself.
type torchVersion struct {
	Torch      string `json:"torch"`
	OneDNN     string `json:"onednn"`
	Capability string `json:"capability"`
	Config     string `json:"config"`
	GPU        string `json:"gpu"` // "": none
	CUDA       string `json:"cuda"`
	CuDNN      string `json:"cudnn"`
}

// startTorch starts a worker with so many threads. Variables that hold OpenBLAS
// back to another processor are not passed on.
func startTorch(ctx context.Context, python, script string, s torchSetting, threads int) (*torchWorker, error) {
	w := &torchWorker{setting: s, cmd: exec.CommandContext(ctx, python, script)}
	blas := threads
	if s.oneBLAS {
		blas = 1
	}
	inherited := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_") || strings.HasPrefix(v, "MALLOC_")
	})
	w.cmd.Env = slices.Concat(inherited, []string{fmt.Sprint("OMP_NUM_THREADS=", threads), fmt.Sprint("OPENBLAS_NUM_THREADS=", blas)}, s.env)
	w.cmd.Stderr = &w.stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, cli.InputErrorf("starting PyTorch: %w; name an interpreter that has it with --python", err)
	}
	return w, nil
}

// ask sends a request and waits for its answer.
func (w *torchWorker) ask(r torchRequest) (reply torchReply, err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	var answer []byte
	if _, err = w.in.Write(append(line, '\n')); err == nil {
		answer, err = w.out.ReadBytes('\n')
	}
	if err != nil {
		w.close()
		said := strings.TrimSpace(w.stderr.String())
		err = fmt.Errorf("the worker ended: %s", said[strings.LastIndex(said, "\n")+1:])
	} else if err = json.Unmarshal(answer, &reply); err != nil {
		err = fmt.Errorf("answer %.80q: %w", answer, err)
	} else if reply.Error != "" {
		err = errors.New(reply.Error)
	}
	if err != nil {
		err = fmt.Errorf("PyTorch (%s), %s: %w", w.setting, r.Do, err)
	}
	return reply, err
}

// close ends the worker: it stops where its input ends.
func (w *torchWorker) close() {
	w.in.Close()
	// How the worker ended says nothing after its last answer.
	_ = w.cmd.Wait()
}

// twinRequest describes a model to the worker.
func twinRequest(m *nn.Model) (torchRequest, error) {
	r := torchRequest{Do: "open"}
	sgd, ok := m.Defaults.Optimizer.(nn.SGD)
	if !ok {
		return r, cli.InputErrorf("model %s: its optimiser is %s; the peers train with SGD", m.Name, m.Defaults.Optimizer.Name())
	}
	r.Optimizer = &sgd
	for i := range m.Stages {
		s := &m.Stages[i]
		if len(s.Inputs) != 1 || s.Inputs[0] != i-1 {
			return r, cli.InputErrorf("model %s: layer %s does not read the one before it alone; the peers have no branches", m.Name, s.Name)
		}
		r.Layers = append(r.Layers, torchLayer{Name: s.Name, Kind: s.Layer.Kind(), In: s.In[0], Settings: s.Layer})
	}
	return r, nil
}

// contestants opens the network in a worker, in every memory format that can matter, and
// returns one contestant for each of these and each mode.
func (w *torchWorker) contestants(m *nn.Model, open torchRequest) (all []*contestant, err error) {
	formats := []string{"contiguous", "channels_last"}
	if !slices.ContainsFunc(m.Stages, func(s nn.Stage) bool { return len(s.In[0]) == 3 && len(s.Params) > 0 }) {
		formats = formats[:1]
	}
	open.Compile = w.setting.compile
	modes := []string{modeTrain, modeEager, modeFrozen}
	if open.Device == kernels.CUDA {
		modes = modes[:2]
	}
	for i, format := range formats {
		open.ChannelsLast, open.First = i > 0, i == 0
		if _, err := w.ask(open); err != nil {
			return nil, err
		}
		for _, mode := range modes {
			all = append(all, w.contestant(w.setting.name+": "+format, mode, i > 0))
		}
	}
	return all, nil
}

func (w *torchWorker) contestant(label, mode string, channelsLast bool) *contestant {
	kind := kindEager
	if w.setting.compile != "" {
		kind = kindCompiled
	}
	if mode != modeTrain {
		label += " " + mode
	}
	return &contestant{
		label: label, mode: mode, kind: kind,
		losses: func(steps int) ([]float64, error) {
			r, err := w.ask(torchRequest{Do: "losses", Mode: mode, ChannelsLast: channelsLast, Steps: steps})
			return r.Values, err
		},
		run: func(warmup, steps int) (time.Duration, error) {
			r, err := w.ask(torchRequest{Do: "time", Mode: mode, ChannelsLast: channelsLast, Warmup: warmup, Steps: steps})
			return cli.Seconds(r.Seconds), err
		},
	}
}
