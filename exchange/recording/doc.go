// Package recording makes a task graph of a recording of PyTorch's profiler, and describes the machine under it.
//
// A task is a piece of a host thread's time, or work of a GPU: a kernel, a copy, a fill. It starts when all tasks before it have ended. So a
// replay on the recorded machine takes as long as the recording.
//
// A task follows the one before it on its thread or in its stream. Work of a GPU also follows the call that launched it, by the correlation of
// both. The call hands the work over when it returns, or when the work begins. If neither holds the work up until it begins, it follows the work
// of another stream that ended last before. Files rarely name the event of such a wait.
//
// Calls with Synchronize in their name wait for work of GPUs, and so do calls that return after their own copy. A thread also waits for the last
// task of another thread of its process. That thread began and ended its work while the first one did nothing: so the thread of the
// backward pass takes over from its caller, and gives back.
//
// There is no task while a thread waits. Other time of a thread without an operator, a call, an annotation or a function of Python is a task
// of the operation "host: unexplained". Time between the last task before work of a GPU and its beginning is part of its task, as
// the parameter "gap" in nanoseconds.
//
// An operator on a host is a task of its thread, with flop and bytes by the shapes of its inputs, if it launches nothing and these are known. Where
// such operators lie within each other, the inner ones are tasks, unless they have less than half of the outer one's work.
// The kernels of an operator share its work by their time.
//
// Steps are the profiler's annotations, or else begin behind each update of the optimiser. In the graph of one step, tasks of the operation
// "steps before" stand for older work.
package recording
