package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dahl/dag"
)

var benchCases = []struct {
	op     string
	shapes [][]int
	params dag.Params
}{
	{"dense", [][]int{{64, 128}, {64, 512}, {128, 512}, {128}}, nil},
	{"dense.dx", [][]int{{64, 512}, {64, 128}, {128, 512}}, nil},
	{"dense.dw", [][]int{{128, 512}, {64, 128}, {64, 512}, {128}}, nil},
	{"dense", [][]int{{8, 128}, {8, 512}, {128, 512}, {128}}, nil},
	{"dense.dx", [][]int{{8, 512}, {8, 128}, {128, 512}}, nil},
	{"dense.dw", [][]int{{128, 512}, {8, 128}, {8, 512}, {128}}, nil},
	{"dense", [][]int{{1, 128}, {1, 512}, {128, 512}, {128}}, nil},
	{"dense", [][]int{{32, 512}, {32, 4096}, {512, 4096}, {512}}, nil},
	{"dense.dx", [][]int{{32, 4096}, {32, 512}, {512, 4096}}, nil},
	{"dense.dw", [][]int{{512, 4096}, {32, 512}, {32, 4096}, {512}}, nil},
	{"dense.relu", [][]int{{32, 512}, {32, 784}, {512, 784}, {512}}, nil},
	{"dense.dx.relu", [][]int{{32, 784}, {32, 512}, {512, 784}, {32, 784}}, nil},
	{"dense.dw", [][]int{{512, 784}, {32, 512}, {32, 784}, {512}}, nil},
	{"dense.dw.sgd", [][]int{{64, 784}, {64}, {64, 64}, {64, 784}, {2}, {64, 784}, {64}}, sgdParams(0, 0, 0)},
	{"dense.dw", [][]int{{64, 784}, {64, 64}, {64, 784}, {64}}, nil},
	{"sgd", [][]int{{64, 784}, {64, 784}, {2}, {64, 784}}, sgdParams(0, 0, 0)},
	{"dense", [][]int{{32, 10}, {32, 512}, {10, 512}, {10}}, nil},
	{"dense.dx", [][]int{{32, 512}, {32, 10}, {10, 512}}, nil},
	{"dense.dw", [][]int{{10, 512}, {32, 10}, {32, 512}, {10}}, nil},
	{"dense", [][]int{{32, 10}, {32, 5408}, {10, 5408}, {10}}, nil},
	{"dense.dx", [][]int{{32, 5408}, {32, 10}, {10, 5408}}, nil},
	{"dense.dw", [][]int{{10, 5408}, {32, 10}, {32, 5408}, {10}}, nil},
	{"dense.relu", [][]int{{32, 120}, {32, 400}, {120, 400}, {120}}, nil},
	{"dense.dx", [][]int{{32, 400}, {32, 120}, {120, 400}}, nil},
	{"dense.dw", [][]int{{120, 400}, {32, 120}, {32, 400}, {120}}, nil},
	{"dense.relu", [][]int{{32, 84}, {32, 120}, {84, 120}, {84}}, nil},
	{"dense.dx.relu", [][]int{{32, 120}, {32, 84}, {84, 120}, {32, 120}}, nil},
	{"dense.dw", [][]int{{84, 120}, {32, 84}, {32, 120}, {84}}, nil},
	{"conv2d", [][]int{{8, 32, 8, 8}, {8, 32, 8, 8}, {32, 32, 3, 3}, {32}}, convParams(1, 1)},
	{"conv2d.dx", [][]int{{8, 32, 8, 8}, {8, 32, 8, 8}, {32, 32, 3, 3}}, convParams(1, 1)},
	{"conv2d.dw", [][]int{{32, 32, 3, 3}, {8, 32, 8, 8}, {8, 32, 8, 8}, {32}}, convParams(1, 1)},
	{"conv2d", [][]int{{8, 4, 26, 26}, {8, 1, 28, 28}, {4, 1, 3, 3}, {4}}, convParams(0, 1)},
	{"conv2d.dw", [][]int{{4, 1, 3, 3}, {8, 4, 26, 26}, {8, 1, 28, 28}, {4}}, convParams(0, 1)},
	{"conv2d.nhwc", [][]int{{4, 32, 32, 32}, {4, 32, 32, 32}, {3, 3, 32, 32}, {32}}, append(convParams(1, 1), dag.Param{Name: "relu", Value: 1})},
	{"conv2d.nhwc.dx", [][]int{{4, 32, 32, 32}, {4, 32, 32, 32}, {3, 3, 32, 32}, {4, 32, 32, 32}}, convParams(1, 1)},
	{"conv2d.nhwc.dw", [][]int{{3, 3, 32, 32}, {4, 32, 32, 32}, {4, 32, 32, 32}, {32}}, convParams(1, 1)},
	{"conv2d.nhwc", [][]int{{8, 16, 16, 64}, {8, 16, 16, 64}, {3, 3, 64, 64}, {64}}, append(convParams(1, 1), dag.Param{Name: "relu", Value: 1})},
	{"conv2d.nhwc.dw", [][]int{{3, 3, 64, 64}, {8, 16, 16, 64}, {8, 16, 16, 64}, {64}}, convParams(1, 1)},
	{"conv2d.nhwc.dx", [][]int{{8, 14, 14, 6}, {8, 10, 10, 16}, {5, 5, 16, 6}}, convParams(0, 1)},
	{"conv2d.nhwc.pool", [][]int{{8, 13, 13, 32}, {8, 13, 13, 32}, {8, 28, 28, 1}, {3, 3, 1, 32}, {32}}, append(convParams(0, 1), pool2(2, 2)...)},
	{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 1, 32}, {8, 13, 13, 32}, {8, 13, 13, 32}, {8, 28, 28, 1}, {32}}, append(convParams(0, 1), pool2(2, 2)...)},
	{"conv2d.nhwc.pool", [][]int{{8, 14, 14, 6}, {8, 14, 14, 6}, {8, 28, 28, 1}, {5, 5, 1, 6}, {6}}, append(convParams(2, 1), pool2(2, 2)...)},
	{"conv2d.nhwc.pool.dw", [][]int{{5, 5, 1, 6}, {8, 14, 14, 6}, {8, 14, 14, 6}, {8, 28, 28, 1}, {6}}, append(convParams(2, 1), pool2(2, 2)...)},
	{"relu", [][]int{{64, 32, 16, 16}, {64, 32, 16, 16}, {64, 32, 16, 16}}, nil},
	{"relu.dx", [][]int{{64, 32, 16, 16}, {64, 32, 16, 16}, {64, 32, 16, 16}}, nil},
	{"maxpool", [][]int{{8, 32, 4, 4}, {8, 32, 4, 4}, {8, 32, 8, 8}}, pool(2, 2)},
	{"maxpool.dx", [][]int{{8, 32, 8, 8}, {8, 32, 4, 4}, {8, 32, 4, 4}}, pool(2, 2)},
	{"maxpool.nhwc", [][]int{{8, 4, 4, 32}, {8, 4, 4, 32}, {8, 8, 8, 32}}, pool(2, 2)},
	{"maxpool.nhwc.dx", [][]int{{8, 8, 8, 32}, {8, 4, 4, 32}, {8, 4, 4, 32}}, pool(2, 2)},
	{"nhwc", [][]int{{8, 8, 8, 32}, {8, 32, 8, 8}}, nil},
	{"nchw", [][]int{{8, 32, 8, 8}, {8, 8, 8, 32}}, nil},
	{"hwio", [][]int{{3, 3, 64, 64}, {64, 64, 3, 3}}, nil},
	{"hwoi", [][]int{{3, 3, 64, 64}, {64, 64, 3, 3}}, nil},
	{"oihw", [][]int{{64, 64, 3, 3}, {3, 3, 64, 64}}, nil},
	{"load.nhwc", [][]int{{64, 32, 32, 3}, {1000, 3, 32, 32}, {64}}, dag.Params{{Name: "divisor", Value: 255}}},
	{"adam", [][]int{{128, 512}, {128, 512}, {2}, {128, 512}, {128, 512}}, adamParams(0)},
	{"softmax_xent", [][]int{{64, 10}, {64}, {64}, {64, 10}, {64}}, dag.Params{{Name: "batch", Value: 64}}},
	{"add", [][]int{{128, 512}, {128, 512}}, nil},
	{"sgd", [][]int{{128, 512}, {128, 512}, {2}, {128, 512}}, sgdParams(0.9, 0, 0)},
	{"load", [][]int{{64, 1, 28, 28}, {1000, 1, 28, 28}, {64}}, dag.Params{{Name: "divisor", Value: 255}}},
}

func convParams(pad, stride float64) dag.Params {
	return dag.Params{{Name: "pad", Value: pad}, {Name: "stride", Value: stride}}
}

func pool(size, stride float64) dag.Params {
	return dag.Params{{Name: "size", Value: size}, {Name: "stride", Value: stride}}
}

func sgdParams(momentum, nesterov, decay float64) dag.Params {
	return dag.Params{{Name: "momentum", Value: momentum}, {Name: "nesterov", Value: nesterov}, {Name: "weight_decay", Value: decay}}
}

// BenchmarkKernels reports GFLOP/s of every variant over shapes of digits-cnn and
// dahl-cnn. ReLU is larger: a processor learns the signs of a small operand by heart.
func BenchmarkKernels(b *testing.B) {
	for _, c := range benchCases {
		k, _ := Lookup(c.op)
		for i := range k.Variants {
			v := &k.Variants[i]
			if !v.RunsHere() {
				continue
			}
			for _, t := range []dag.DType{dag.Float32, dag.Float64} {
				s := newSample(k, t, c.shapes, firstModes(k), c.params, 0)
				s.fill(rand.New(rand.NewPCG(1, 2)))
				if err := Validate(&s.spec); err != nil {
					b.Fatal(err)
				}
				flops, _ := k.Work(&s.spec)
				call, run := s.call(v), v.Run(t)
				b.Run(fmt.Sprintf("%s/%s/%s/%v", c.op, s.spec.Key(), v.Name, t), func(b *testing.B) {
					for b.Loop() {
						run(call)
					}
					b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}

// firstModes is the first mode of each operand.
func firstModes(k *Kernel) []dag.Mode {
	var modes []dag.Mode
	for _, o := range k.Operands {
		modes = append(modes, o.Modes[0])
	}
	return modes
}
