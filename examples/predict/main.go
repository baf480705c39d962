// Predict says what training lenet5 takes on machines that are not here.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/nn"
	"dahl/platforms"
	"dahl/train"
)

func main() {
	model, err := nn.ModelByName("lenet5")
	if err != nil {
		log.Fatal(err)
	}
	data, err := train.OpenData("synthetic:1x28x28:1024", 0, 0) // nobody looks at the images
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"laptop", "server"} {
		machine, err := platforms.Load(name)
		if err != nil {
			log.Fatal(err)
		}
		w, err := train.New(model, data, machine, train.Options{Batch: 64, Elsewhere: true})
		if err != nil {
			log.Fatal(err)
		}
		predicted, err := w.Predict(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: an epoch takes %v, a step %v and %.3g J\n", name, predicted.Run, predicted.StepTime(), predicted.JoulesPerStep())
	}
}
