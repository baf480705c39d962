package execute

import (
	"errors"
	"fmt"
	"strings"

	"dahl/dag"
	"dahl/kernels"
)

// TaskError says which task ended a run, and why.
type TaskError struct {
	Graph, Task, Op string
	Step            int
	Operands        string // names of the operands' buffers, with modes and shapes
	Err             error
}

func (e *TaskError) Error() string {
	return fmt.Sprintf("execute: graph %q, step %d: task %q (%s %s): %v", e.Graph, e.Step, e.Task, e.Op, e.Operands, e.Err)
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// errGoexit is the cause when a hook leaves its goroutine, as testing.T.FailNow does.
var errGoexit = errors.New("the hook ended its goroutine")

// taskError names a task; args may be nil.
func taskError(g *dag.Graph, t dag.TaskID, step int, args []kernels.Arg, cause error) *TaskError {
	task := &g.Tasks[t]
	var b strings.Builder
	for i := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s %v", g.Buffers[task.Accesses[i].Buffer].Name, args[i].Mode, args[i].Shape)
	}
	return &TaskError{Graph: g.Name, Task: task.Name, Op: task.Op, Step: step, Operands: b.String(), Err: cause}
}
