package kernels_test

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
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

// A convolution of 9 rows by windows of 3 at stride 2, with one row of padding, has 5 rows. The tile
// with the last three of them reads the last six rows of the image.
func ExampleSpace_Tile() {
	s := &calls.Spec{Op: "conv2d.nhwc", Type: dag.Float32, Operands: []calls.OperandSpec{
		{Type: dag.Float32, Mode: dag.Write, Shape: []int{4, 5, 1, 8}},
		{Type: dag.Float32, Mode: dag.Read, Shape: []int{4, 9, 1, 3}},
		{Type: dag.Float32, Mode: dag.Read, Shape: []int{3, 1, 3, 8}},
	}, Params: dag.Params{{Name: "stride", Value: 2}, {Name: "top", Value: 1}, {Name: "left", Value: 0}, {Name: "relu", Value: 0}}}
	space, err := kernels.SpaceOf(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("may also be cut along", space.Reduced())
	tile := space.Tile(dag.Box{{Lo: 0, Hi: 4}, {Lo: 2, Hi: 5}, {Lo: 0, Hi: 1}, {Lo: 0, Hi: 8}}, nil)
	fmt.Println(tile.Boxes[1], tile.Params)
	// Channel 2 alone is added to what the other channels give.
	tile = space.Tile(nil, map[string]dag.Range{"c": {Lo: 2, Hi: 3}})
	fmt.Println(tile.Boxes[2], tile.First)
	// Output:
	// may also be cut along [{c 3} {i 3} {j 1}]
	// 0:4,3:9,0:1,0:3 [{stride 2} {top 0} {left 0} {relu 0}]
	// 0:3,0:1,2:3,0:8 false
}
