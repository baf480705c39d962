package train

import (
	"fmt"

	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/schedule"
)

// Options say how a network is trained and where its tasks run. The zero value trains for an
// epoch in float32, with the model's batch and optimiser, planned by HEFT.
type Options struct {
	Batch     int          // samples per step; zero means the model's, or all samples where they are fewer
	Epochs    int          // zero means one
	Type      dag.DType    // of the network; the zero value, which no network has, is float32
	Optimizer nn.Optimizer // nil means the model's
	Init      Initialiser  // of the parameters; nil means PyTorch's distributions
	Seed      uint64       // of everything random
	Shuffle   bool         // the samples, in a new order in every epoch

	Lowering *dag.Lowering      // nil means by Tiles
	Tiles    tiling.Tiling      // of the model on the platform; the zero value is the default
	Strategy *strategy.Strategy // of networks, which gives the lowering stages; nil means as it is
	Policy   schedule.Policy    // nil means the order of the lowering's stages, or HEFT on all devices; only the commands compare policies
	Plan     *schedule.Plan     // of the training step; nil means by the policy
	Variant  string             // of kernels, where they have it; empty means the fastest known
	// Precision of products is one of [dahl/kernels/calls.Precisions]. Empty means the finest.
	Precision string

	// Evaluate says that nothing is trained: the test set goes through the network with its first weights, and
	// [Trainer].Predictions has what the network says.
	Evaluate bool
	// Outputs says that an evaluation keeps all outputs of the network, for [Trainer.Outputs].
	Outputs bool

	// Devices is the list by which the platform was chosen from another one, as
	// [dahl/platform.Platform.Select] takes it. Empty means that it is whole.
	Devices string
	// OtherMachine says that the platform is another machine: its predictions do not depend on
	// this one, and it cannot train.
	OtherMachine bool

	// AnyClock sets the option of the same name in [dahl/execute.Options].
	AnyClock bool

	// Stream says that samples are read while the training goes on, a few batches ahead, and not
	// held in memory. Data that do not fit the memory are streamed whatever it says.
	Stream bool

	// Record is the number of steps of every graph that are recorded in an epoch. Zero means
	// all where the devices are processors alone, else [RecordedByDefault].
	Record int
	// KeepEvery is the number of training steps after which the weights are kept, so that the
	// training goes on from there when a device fails. Zero means that such a failure ends it.
	KeepEvery int
	// Checkpoint says how often [Trainer].OnCheckpoint is called.
	Checkpoint CheckpointEvery
	// ContinueOnNaN lets a training go on whose loss is NaN or infinite.
	ContinueOnNaN bool

	// Ranks are the processes that train together, one for each node of the platform. Rank 0 trains, and the others
	// take part by [Workload.Serve]. Nil means that this process does all.
	Ranks *execute.Ranks
}

// InputError is an error of the caller's input.
type InputError struct{ Err error }

func (e InputError) Error() string { return e.Err.Error() }
func (e InputError) Unwrap() error { return e.Err }

// asInput marks an error as the caller's; nil stays nil.
func asInput(err error) error {
	if err == nil {
		return nil
	}
	return InputError{Err: err}
}

func inputErrorf(format string, args ...any) error {
	return InputError{Err: fmt.Errorf(format, args...)}
}
