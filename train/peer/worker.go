package peer

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dahl/platform"
)

// programs are the workers; the first lines of worker.py say what they are asked.
//
//go:embed workers/*.py
var programs embed.FS

// Unpack writes the workers into a directory, from which they are started.
func Unpack(dir string) error { return os.CopyFS(dir, programs) }

// Worker is a process of a program in a setting.
type Worker struct {
	Program Program
	Setting Setting

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// Versions are the versions that a worker reports of its program.
type Versions struct {
	Program    string `json:"program"`              // with its version
	Library    string `json:"library,omitempty"`    // of kernels, with its version
	Capability string `json:"capability,omitempty"` // of its own kernels
	Config     string `json:"config,omitempty"`     // of its build
	GPU        string `json:"gpu,omitempty"`
}

// MissingError says that an interpreter is missing, or its program: no process came so
// far as to tell its version.
type MissingError struct{ Err error }

func (e *MissingError) Error() string { return e.Err.Error() }
func (e *MissingError) Unwrap() error { return e.Err }

// request is a line to a worker. The comment of worker.py says which fields belong to each request.
type request struct {
	Do     string    `json:"do"`
	Format string    `json:"format"`
	Mode   string    `json:"mode,omitempty"`
	Steps  int       `json:"steps"`
	Warmup int       `json:"warmup"`
	Epoch  int       `json:"epoch"` // from 0
	Rates  []float64 `json:"rates"` // of its steps

	*Twin          // of "open"
	Compile string `json:"compile"`
	First   bool   `json:"first"` // the networks before go
}

// reply is a worker's line.
type reply struct {
	Error      string    `json:"error"`
	Versions   Versions  `json:"versions"`
	Losses     []float64 `json:"losses"`
	Correct    int       `json:"correct"`
	Seconds    float64   `json:"seconds"`
	CPUSeconds float64   `json:"cpu_seconds"`
	PeakBytes  int64     `json:"peak_bytes"`
}

// Start starts a worker that is unpacked in a directory, by a Python interpreter, for a device
// ([platform.CPU] or [platform.CUDA]) and a number of threads. The end of the context kills
// it.
func Start(ctx context.Context, dir, python string, p Program, s Setting, device string, threads int) (*Worker, Versions, error) {
	cores := 0
	if p.pinned && device == platform.CPU {
		cores = threads
	}
	w := &Worker{Program: p, Setting: s}
	w.cmd = exec.CommandContext(ctx, python, filepath.Join(dir, "workers", "worker.py"), p.module, fmt.Sprint(cores))
	w.cmd.Env = p.environment(os.Environ(), s, device, threads)
	w.cmd.Stderr = &w.stderr
	// A process that the worker started may hold its outputs open when it is killed.
	w.cmd.WaitDelay = time.Second
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, Versions{}, err
	}
	w.out = bufio.NewReader(out)
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, Versions{}, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, Versions{}, &MissingError{fmt.Errorf("starting %s: %w; name an interpreter that has it with --python", p.Name, err)}
	}
	said, err := w.ask(request{Do: "describe"})
	if err == nil {
		return w, said.Versions, nil
	}
	w.Close()
	if ctx.Err() != nil {
		return nil, Versions{}, context.Cause(ctx) // whose end killed the worker, too
	}
	return nil, Versions{}, &MissingError{fmt.Errorf("%w; name an interpreter that has it with --python", err)}
}

// Installed reports whether an interpreter has a program: a [MissingError] says why not.
func Installed(ctx context.Context, python string, p Program) error {
	dir, err := os.MkdirTemp("", "dahl-peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := Unpack(dir); err != nil {
		return fmt.Errorf("unpacking the worker of %s: %w", p, err)
	}
	w, _, err := Start(ctx, dir, python, p, p.onCPU[0], platform.CPU, 1)
	if err == nil {
		w.Close()
	}
	return err
}

// ask sends a request and waits for its answer.
func (w *Worker) ask(r request) (answer reply, err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	var said []byte
	if _, err = w.in.Write(append(line, '\n')); err == nil {
		said, err = w.out.ReadBytes('\n')
	}
	if err != nil {
		w.Close()
		last := strings.TrimSpace(w.stderr.String())
		err = fmt.Errorf("the worker ended: %s", last[strings.LastIndex(last, "\n")+1:])
	} else if err = json.Unmarshal(said, &answer); err != nil {
		err = fmt.Errorf("answer %.80q: %w", said, err)
	} else if answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		err = fmt.Errorf("%s (%s), %s: %w", w.Program.Name, w.Setting, r.Do, err)
	}
	return answer, err
}

// Close ends the worker: it stops where its input ends.
func (w *Worker) Close() {
	w.in.Close()
	// How the worker ended says nothing after its last answer.
	_ = w.cmd.Wait()
}

// PID is the number of the process.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Open builds a network in a format, without closing it in other formats; the first one replaces all of
// another network.
func (w *Worker) Open(t *Twin, format string, first bool) error {
	_, err := w.ask(request{Do: "open", Format: format, Twin: t, Compile: w.Setting.compile, First: first})
	return err
}

// Losses returns the losses of the first steps, from the first weights, over the samples in turn.
func (w *Worker) Losses(mode, format string, steps int) ([]float64, error) {
	r, err := w.ask(request{Do: "losses", Mode: mode, Format: format, Steps: steps})
	return r.Losses, err
}

// Time runs steps over the samples in turn, after some more, and returns the time of the steps alone.
func (w *Worker) Time(mode, format string, warmup, steps int) (time.Duration, error) {
	r, err := w.ask(request{Do: "time", Mode: mode, Format: format, Warmup: warmup, Steps: steps})
	return time.Duration(r.Seconds * float64(time.Second)), err
}
