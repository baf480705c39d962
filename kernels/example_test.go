package kernels_test

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
)

// An operation knows from its operands what it has to do: 8 times 10 sums of 64 products,
// two operations each, and one more where the bias is added.
func ExampleAdd() {
	k, err := kernels.KernelByName("dense")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(k.Doc)
	b := dag.NewBuilder("layer")
	task := dag.Task{Name: "layer", Op: "dense", Type: dag.Float32}
	for i, shape := range [][]int{{8, 10}, {8, 64}, {10, 64}, {10}} {
		o := &k.Operands[i]
		buffer := b.Buffer(dag.Buffer{Name: o.Name, Type: dag.Float32, Shape: shape, Role: dag.Activation})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: buffer}, Mode: o.Modes[0]})
	}
	kernels.Add(b, task)
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Tasks[0].Shape, g.Tasks[0].Flops, "operations")
	// Output:
	// y = x·wᵀ + b
	// 8x10;8x64;10x64;10 10320 operations
}
