package kernels

import (
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/gpu"
)

// Marks of the places of one token z in sequences of tokens i. They say where padding is, and where the second part of a sample is that a token
// parts from the first one:
//
//	behind = 0    y[n,t] = [i[n,t] ≠ z]
//	behind = 1    y[n,t] = [i[n,s] = z for exactly one s < t]
var marks = Kernel{
	Op: "marks", Doc: "y = 1 where i is not the token, or with behind = 1 where the token is once before, else 0",
	Operands: []Operand{writes("y", Index, "n t"), reads("i", Index, "n t").below("5")},
	Params:   []string{"token", "behind"}, Whole: "t",
	Check: func(s *calls.Spec) error {
		if _, err := intParam(s, "token", 0, math.MaxInt32); err != nil {
			return err
		}
		return checkFlag("behind")(s)
	},
	Flops:    perElement(1, 0),
	Variants: withRef("token by token", marksOf, marksOf, gpu.OnCUDA("a sample per thread", gpu.MarksOnCUDA)),
}

func marksOf(c *calls.Call) {
	y, from := calls.Map2Of[int32](&c.Args[0]), calls.Map2Of[int32](&c.Args[1])
	token, behind := int32(c.Params[0]), c.Params[1] == 1
	for n := range y.Rows {
		before, to := 0, y.Row(n)
		for t, v := range from.Row(n) {
			marked := v != token
			if behind {
				marked = before == 1
			}
			to[t] = 0
			if marked {
				to[t] = 1
			}
			if v == token {
				before++
			}
		}
	}
}
