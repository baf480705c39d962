package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"dahl/cmd/cli"
)

// convolutionProgram runs convolutions in PyTorch at the requests on its standard input; its first lines
// say which.
//
//go:embed torch_convolution.py
var convolutionProgram string

// torchConvolutions runs it.
type torchConvolutions struct {
	Torch  string `json:"torch"` // versions
	OneDNN string `json:"onednn"`

	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	stderr  bytes.Buffer
}

// startConvolutions starts PyTorch on one thread, whose memory is not given back between calls.
func startConvolutions(ctx context.Context, python string) (*torchConvolutions, error) {
	t := &torchConvolutions{cmd: exec.CommandContext(ctx, python, "-c", convolutionProgram)}
	inherited := slices.DeleteFunc(t.cmd.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OMP_") || strings.HasPrefix(v, "MALLOC_") || strings.HasPrefix(v, "ATEN_")
	})
	t.cmd.Env = append(inherited, "OMP_NUM_THREADS=1", "MALLOC_TRIM_THRESHOLD_=4000000000", "MALLOC_MMAP_THRESHOLD_=4000000000")
	t.cmd.Stderr = &t.stderr
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.answers = json.NewDecoder(out)
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, cli.InputErrorf("starting PyTorch: %w; name an interpreter that has it with --python", err)
	}
	if err := t.answers.Decode(t); err != nil {
		return nil, cli.InputErrorf("%w; name an interpreter that has PyTorch and NumPy with --python", t.ended())
	}
	return t, nil
}

// ended closes the program, and says what it said last.
func (t *torchConvolutions) ended() error {
	t.close()
	said := strings.TrimSpace(t.stderr.String())
	return fmt.Errorf("PyTorch ended: %s", said[strings.LastIndex(said, "\n")+1:])
}

// close ends the program: it stops where its input ends.
func (t *torchConvolutions) close() {
	t.in.Close()
	// How it ended says nothing after its last answer.
	_ = t.cmd.Wait()
}

// run is the time of so many calls of a convolution.
func (t *torchConvolutions) run(c *convolution, calls int) (time.Duration, error) {
	line, err := json.Marshal(struct {
		*convolution
		Calls int `json:"calls"`
	}{c, calls})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Seconds float64 `json:"seconds"`
	}
	if _, err = t.in.Write(append(line, '\n')); err == nil {
		err = t.answers.Decode(&answer)
	}
	if err != nil {
		return 0, t.ended()
	}
	return cli.Seconds(answer.Seconds), nil
}
