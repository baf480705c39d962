// Train trains a network on handwritten digits, on the cores of this machine.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/execute/hardware"
	"dahl/nn/models"
	"dahl/train"
)

func main() {
	model := must(models.ByName("digits-cnn"))
	data := must(train.OpenData("digits", 0, 0))
	machine := must(hardware.Detect())
	w := must(train.New(model, data, machine, train.Options{Epochs: 2, Shuffle: true, Seed: 1}))
	run := must(w.Train(context.Background()))
	for _, e := range run.Epochs {
		fmt.Printf("epoch %d: loss %.3f, test accuracy %.1f %%, %.0f samples/s\n", e.Epoch, e.Loss, 100*e.TestAccuracy, e.SamplesPerSec())
	}
	for _, a := range run.Weights() { // as PyTorch names and orders them, for npz.Write
		fmt.Println(a.Name, a.Shape)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
