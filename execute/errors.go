package execute

import (
	"errors"
	"fmt"
	"strings"

	"dahl/execute/driver"
)

// TaskError says which task ended a run, and why.
type TaskError struct {
	Graph, Task, Op string
	Step            int
	Operands        string // buffer names, modes and shapes of the operands
	// Device is the device that ran the task, and State is how far the task had come. Both are
	// empty for a task of a cpu worker.
	Device, State string
	Err           error
}

func (e *TaskError) Error() string {
	where := ""
	if e.Device != "" {
		where = fmt.Sprintf(" on device %q, %s", e.Device, e.State)
	}
	return fmt.Sprintf("execute: graph %q, step %d: task %q (%s %s)%s: %v", e.Graph, e.Step, e.Task, e.Op, e.Operands, where, e.Err)
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// deviceError names the device of an error whose task is not known.
type deviceError struct {
	device string
	err    error
}

func (e *deviceError) Error() string { return fmt.Sprintf("device %q: %v", e.device, e.err) }
func (e *deviceError) Unwrap() error { return e.err }

// FailedDevice is the device that an error of New or Run is about, if it was lost or lacked the
// memory for its work. The work may go on without that device.
func FailedDevice(err error) (device string, failed bool) {
	if !errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrMemory) {
		return "", false
	}
	var at *TaskError
	if errors.As(err, &at) && at.Device != "" {
		return at.Device, true
	}
	var of *deviceError
	if errors.As(err, &of) {
		return of.device, true
	}
	return "", false
}

// errGoexit is the cause when a hook leaves its goroutine, as testing.T.FailNow does.
var errGoexit = errors.New("the hook ended its goroutine")

// taskError makes an error that names a task of the running graph.
func (j *job) taskError(t, step int32, cause error) *TaskError {
	g := j.graph.graph
	task := &g.Tasks[t]
	var operands []string
	for _, a := range task.Accesses {
		buf := &g.Buffers[a.Buffer]
		shape := buf.Shape
		if a.Box != nil {
			shape = nil
			for _, r := range a.Box {
				shape = append(shape, r.Len())
			}
		}
		operands = append(operands, fmt.Sprintf("%s %s %v", buf.Name, a.Mode, shape))
	}
	return &TaskError{Graph: g.Name, Task: task.Name, Op: task.Op, Step: int(step), Operands: strings.Join(operands, ", "), Err: cause}
}
