// Train trains a network on handwritten digits, on the cores of this machine.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/execute"
	"dahl/nn"
	"dahl/train"
)

func main() {
	model, err := nn.ModelByName("digits-cnn")
	if err != nil {
		log.Fatal(err)
	}
	data, err := train.OpenData("digits", 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	machine, err := execute.Detect()
	if err != nil {
		log.Fatal(err)
	}
	w, err := train.New(model, data, machine, train.Options{Epochs: 2, Shuffle: true, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	run, err := w.Train(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range run.Epochs {
		fmt.Printf("epoch %d: loss %.3f, test accuracy %.1f %%, %.0f images/s\n", e.Epoch, e.Loss, 100*e.TestAccuracy, e.ImagesPerSec)
	}
	for _, a := range run.Weights() { // as PyTorch names and orders them, for nn.WriteNPZ
		fmt.Println(a.Name, a.Shape)
	}
}
