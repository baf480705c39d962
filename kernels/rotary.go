package kernels

import (
	"fmt"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// Rotary positions (Su et al., "RoFormer", 2021, arXiv:2104.09864), in the order of Llama's features: of each head of D, an even number, the
// pair of feature i and i+D/2 at position t is turned by the angle t·base^(-2i/D). rotary.table has the cosines of all angles of a
// position and then their sines. A product of a query and a key depends on the distance of their positions alone. The gradient is turned back.

var rotaryTable = Kernel{
	Op: "rotary.table", Doc: "table = cos and sin of t·base^(-2i/d) for i < d/2",
	Operands: []Operand{writes("table", Real, "t d")},
	Params:   []string{"base"}, Whole: "t d",
	Check: func(s *calls.Spec) error {
		if err := checkEven(s.Operands[0].Shape[1]); err != nil {
			return err
		}
		return realParam(s, "base", 1, math.MaxFloat32)
	},
	Flops:    perElement(20, 0),
	Variants: withRef("in float64", rotaryTableRef[float32], rotaryTableRef[float64], gpu.RotaryTable),
}

var rotary = Kernel{
	Op: "rotary", Doc: "y = x, each pair of its heads turned by the angles of the table, or with back = 1 turned back",
	Operands: []Operand{writes("y", Real, "n t h:d"), reads("x", Real, "n t h:d"), reads("table", Real, "t d")},
	Options:  "heads=1", Params: []string{"back"}, Sizes: "h=heads", Whole: "d",
	Check: func(s *calls.Spec) error {
		if err := checkEven(s.Operands[2].Shape[1]); err != nil {
			return err
		}
		return checkFlag("back")(s)
	},
	Flops:    perElement(3, 0),
	Variants: withRef("pair by pair", rotaryRef[float32], rotaryRef[float64], gpu.Rotary),
}

// checkEven refuses an odd number of features of a head.
func checkEven(features int) error {
	if features%2 == 1 {
		return fmt.Errorf("heads of %d features; rotary positions turn pairs", features)
	}
	return nil
}

func rotaryTableRef[T calls.Float](c *calls.Call) {
	table := calls.Map2Of[T](&c.Args[0])
	for t := range table.Rows {
		row, half := table.Row(t), table.Columns/2
		for i := range half {
			angle := float64(t) * math.Pow(c.Params[0], -float64(2*i)/float64(table.Columns))
			row[i], row[half+i] = T(math.Cos(angle)), T(math.Sin(angle))
		}
	}
}

func rotaryRef[T calls.Float](c *calls.Call) {
	y, x, table := &c.Args[0], &c.Args[1], calls.Map2Of[T](&c.Args[2])
	heads, back, half := int(c.Params[0]), c.Params[1] == 1, table.Columns/2
	for n := range x.Shape[0] {
		for t := range x.Shape[1] {
			cos, sin := table.Row(t)[:half], table.Row(t)[half:]
			for h := range heads {
				to, from := cpu.Features[T](y, n, t, h, 2*half), cpu.Features[T](x, n, t, h, 2*half)
				for i, c := range cos {
					a, b, s := from[i], from[half+i], sin[i]
					if back {
						s = -s
					}
					to[i], to[half+i] = T(a*c)-T(b*s), T(b*c)+T(a*s)
				}
			}
		}
	}
}
