// Predict prints the time and energy of training lenet5 on machines that are not here.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/nn/models"
	"dahl/platforms"
	"dahl/train"
)

func main() {
	model := must(models.ByName("lenet5"))
	data := must(train.OpenData("synthetic:1x28x28:1024", 0, 0)) // nobody looks at the samples
	for _, name := range []string{"laptop", "server"} {
		machine := must(platforms.Load(name))
		w := must(train.New(model, data, machine, train.Options{Batch: 64, OtherMachine: true}))
		predicted := must(w.Predict(context.Background()))
		fmt.Printf("%s: an epoch takes %v, a step %v and %.3g J\n", name, predicted.Run, predicted.Counted.PerStep(), predicted.Counted.Joules/float64(predicted.Counted.Steps))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
