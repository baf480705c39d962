package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Softmax and small reductions on a CUDA device, see cuda/softmax.cu and cuda/reduce.cu.

// softmaxParams mirrors SoftmaxParams of cuda/softmax.cu. Operands that an operation lacks are 0.
type softmaxParams struct {
	Z, Dz            uint64
	ZRow, DzRow      int64
	Y, Loss, Correct uint64
	Weight           uint64
	Batch, Smoothing float64
	Rows, Classes    int32
}

// wideClasses is the number of classes above which a block computes a row, not a warp.
const wideClasses = 1024

// SoftmaxOnCUDA is the variant of an operation on rows of classes. operands are the names of its
// operands in its line of the table, and params the names of its parameters.
func SoftmaxOnCUDA(symbol string, operands, params []string) []calls.Variant {
	return OnCUDA("a warp per row; a block where there are more than 1024 classes", func(c *calls.DeviceCall) []offload.Launch {
		var p softmaxParams
		address := map[string]*uint64{
			"z": &p.Z, "dz": &p.Dz, "y": &p.Y, "loss": &p.Loss, "correct": &p.Correct, "weight": &p.Weight,
		}
		setting := map[string]*float64{"batch": &p.Batch, "smoothing": &p.Smoothing}
		row := map[string]*int64{"z": &p.ZRow, "dz": &p.DzRow}
		for i, name := range operands[:len(c.Args)] {
			a := &c.Args[i]
			*address[name] = a.Addr
			if len(a.Shape) == 2 {
				*row[name], p.Rows, p.Classes = int64(a.Stride[0]), int32(a.Shape[0]), int32(a.Shape[1])
			}
		}
		for i, name := range params {
			*setting[name] = c.Params[i]
		}
		l := offload.Launch{
			Module: "softmax", Symbol: c.Symbol(symbol), Params: offload.Params(p),
			Block: [3]uint32{128, 1, 1}, Grid: [3]uint32{blocksOf(int(p.Rows), 128/32), 1, 1},
		}
		if p.Classes > wideClasses {
			l.Symbol = c.Symbol(symbol + ".wide")
			l.Block, l.Grid = [3]uint32{256, 1, 1}, [3]uint32{uint32(p.Rows), 1, 1}
		}
		return []offload.Launch{l}
	})
}

// reduceParams mirrors ReduceParams of cuda/reduce.cu.
type reduceParams struct {
	Result, Values uint64
	Count          int32
}

// ReduceOnCUDA is the variant of an operation that reduces many numbers to one.
func ReduceOnCUDA(symbol string) []calls.Variant {
	return OnCUDA("one block, then a tree", func(c *calls.DeviceCall) []offload.Launch {
		return []offload.Launch{{
			Module: "reduce", Symbol: c.Symbol(symbol),
			Params: offload.Params(reduceParams{c.Args[0].Addr, c.Args[1].Addr, int32(c.Args[1].Shape[0])}),
			Block:  [3]uint32{1024, 1, 1}, Grid: [3]uint32{1, 1, 1},
		}}
	})
}
