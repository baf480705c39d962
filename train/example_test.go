package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"dahl/execute"
	"dahl/nn/models"
	"dahl/train"
)

// A training that was interrupted goes on from its last checkpoint, and comes to the weights of
// one that nothing disturbed.
func ExampleWorkload_Resume() {
	m, err := models.ByName("mlp")
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := train.OpenData("digits", 101, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	machine, err := execute.Detect()
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := train.New(m, d, machine, train.Options{Batch: 13, Epochs: 2, Checkpoint: train.CheckpointEvery{Steps: 5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	whole, err := w.Train(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}

	var file bytes.Buffer
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	t, err := w.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	t.OnCheckpoint = func(c *train.Checkpoint) error {
		interrupt()
		return c.Encode(&file)
	}
	err = t.Run(ctx)
	t.Close()
	fmt.Println("interrupted:", errors.Is(err, context.Canceled))

	kept, err := train.DecodeCheckpoint(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err = w.Resume(kept)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	fmt.Println("goes on after step", kept.Steps)
	fmt.Println(t.Run(context.Background()), t.WeightsHash() == whole.WeightsHash())
	// Output:
	// interrupted: true
	// goes on after step 5
	// <nil> true
}
