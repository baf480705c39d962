package nn_test

import (
	"fmt"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/models"
)

// A hundred images in batches of 32 are three whole steps and one of four images, which is
// a graph of its own with the same weights.
func ExampleNewProgram() {
	m, err := models.ByName("lenet5")
	if err != nil {
		fmt.Println(err)
		return
	}
	prog, err := nn.NewProgram(m, nn.ProgramOptions{Batch: 32, TrainSamples: 100, Type: dag.Float32, Lowering: nn.DefaultLowering(m, 32, 1<<20, dag.Float32)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, segment := range prog.Order {
		fmt.Println(segment.Steps, "of", prog.Graphs[segment.Graph].Name)
	}
	// Output:
	// 3 of train
	// 1 of train.tail
}
