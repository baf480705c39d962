package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

var benchCases = []struct {
	op     string
	shapes [][]int
	params dag.Params
}{
	{"dense", [][]int{{64, 128}, {64, 512}, {128, 512}, {128}}, nil},
	{"dense.dx", [][]int{{64, 512}, {64, 128}, {128, 512}}, nil},
	{"dense.dw", [][]int{{128, 512}, {64, 128}, {64, 512}, {128}}, nil},
	{"dense", [][]int{{32, 512}, {32, 4096}, {512, 4096}, {512}}, nil},
	{"dense.dx", [][]int{{32, 4096}, {32, 512}, {512, 4096}}, nil},
	{"dense.dw", [][]int{{512, 4096}, {32, 512}, {32, 4096}, {512}}, nil},
	// Of a step of gpt-char, by one sample.
	{"dense", [][]int{{256, 1536}, {256, 384}, {1536, 384}, {1536}}, nil},
	{"dense", [][]int{{256, 384}, {256, 1536}, {384, 1536}, {384}}, nil},
	{"dense.dx", [][]int{{256, 384}, {256, 1536}, {1536, 384}}, nil},
	{"dense.dw", [][]int{{1536, 384}, {256, 1536}, {256, 384}, {1536}}, nil},
	{"dense.relu", [][]int{{32, 512}, {32, 784}, {512, 784}, {512}}, nil},
	{"dense.dx.relu", [][]int{{32, 784}, {32, 512}, {512, 784}, {32, 784}}, nil},
	{"dense.dw.sgd", [][]int{{64, 784}, {64, 64}, {64, 784}, {2}, {64}, {64, 784}, {64}}, kerneltest.SGDParams(0, 0, 0)},
	{"dense.dw", [][]int{{64, 784}, {64, 64}, {64, 784}, {64}}, nil},
	{"sgd", [][]int{{64, 784}, {64, 784}, {2}, {64, 784}}, kerneltest.SGDParams(0, 0, 0)},
	{"dense.nhwc.dw.sgd", [][]int{{10, 32, 13, 13}, {64, 10}, {64, 13, 13, 32}, {2}, {10}}, kerneltest.SGDParams(0, 0, 0)},
	{"dense.dw", [][]int{{10, 5408}, {64, 10}, {64, 5408}, {10}}, nil},
	{"nchw", [][]int{{10, 32, 13, 13}, {10, 13, 13, 32}}, nil},
	{"sgd", [][]int{{10, 5408}, {10, 5408}, {2}}, kerneltest.SGDParams(0, 0, 0)},
	{"conv2d.nhwc", [][]int{{4, 32, 32, 32}, {4, 32, 32, 32}, {3, 3, 32, 32}, {32}}, kerneltest.ConvReLUParams(1, 1, 1)},
	{"conv2d.nhwc.dx", [][]int{{4, 32, 32, 32}, {4, 32, 32, 32}, {3, 3, 32, 32}, {4, 32, 32, 32}}, kerneltest.ConvParams(1, 1)},
	{"conv2d.nhwc.dw", [][]int{{3, 3, 32, 32}, {4, 32, 32, 32}, {4, 32, 32, 32}, {32}}, kerneltest.ConvParams(1, 1)},
	{"conv2d.nhwc", [][]int{{8, 16, 16, 64}, {8, 16, 16, 64}, {3, 3, 64, 64}, {64}}, kerneltest.ConvReLUParams(1, 1, 1)},
	{"conv2d.nhwc.dw", [][]int{{3, 3, 64, 64}, {8, 16, 16, 64}, {8, 16, 16, 64}, {64}}, kerneltest.ConvParams(1, 1)},
	{"conv2d.nhwc.dw.sgd", [][]int{{64, 64, 3, 3}, {8, 16, 16, 64}, {8, 16, 16, 64}, {2}, {64}}, append(kerneltest.ConvParams(1, 1), kerneltest.SGDParams(0, 0, 0)...)},
	{"conv2d.nhwc.dx", [][]int{{8, 14, 14, 6}, {8, 10, 10, 16}, {5, 5, 16, 6}}, kerneltest.ConvParams(0, 1)},
	{"conv2d.nhwc.pool", [][]int{{8, 13, 13, 32}, {8, 13, 13, 32}, {8, 28, 28, 1}, {3, 3, 1, 32}, {32}}, kerneltest.ConvPoolParams(0, 1, 2, 2)},
	{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 1, 32}, {8, 13, 13, 32}, {8, 13, 13, 32}, {8, 28, 28, 1}, {32}}, kerneltest.ConvPoolParams(0, 1, 2, 2)},
	{"conv2d.nhwc.pool", [][]int{{8, 14, 14, 6}, {8, 14, 14, 6}, {8, 28, 28, 1}, {5, 5, 1, 6}, {6}}, kerneltest.ConvPoolParams(2, 1, 2, 2)},
	{"conv2d.nhwc.pool.dw", [][]int{{5, 5, 1, 6}, {8, 14, 14, 6}, {8, 14, 14, 6}, {8, 28, 28, 1}, {6}}, kerneltest.ConvPoolParams(2, 1, 2, 2)},
	{"relu", [][]int{{64, 32, 16, 16}, {64, 32, 16, 16}, {64, 32, 16, 16}}, nil},
	{"relu.dx", [][]int{{64, 32, 16, 16}, {64, 32, 16, 16}, {64, 32, 16, 16}}, nil},
	{"maxpool.nhwc", [][]int{{8, 4, 4, 32}, {8, 4, 4, 32}, {8, 8, 8, 32}}, kerneltest.PoolParams(2, 2)},
	{"maxpool.nhwc.dx", [][]int{{8, 8, 8, 32}, {8, 4, 4, 32}, {8, 4, 4, 32}}, kerneltest.PoolParams(2, 2)},
	{"nhwc", [][]int{{8, 8, 8, 32}, {8, 32, 8, 8}}, nil},
	{"nchw", [][]int{{8, 32, 8, 8}, {8, 8, 8, 32}}, nil},
	{"hwio", [][]int{{3, 3, 64, 64}, {64, 64, 3, 3}, {3, 3, 64, 64}}, nil},
	{"hwoi", [][]int{{3, 3, 64, 64}, {64, 64, 3, 3}}, nil},
	{"oihw", [][]int{{64, 64, 3, 3}, {3, 3, 64, 64}}, nil},
	{"load.nhwc", [][]int{{64, 32, 32, 3}, {1000, 3, 32, 32}, {64}}, dag.Params{{Name: "divisor", Value: 255}}},
	{"adam", [][]int{{128, 512}, {128, 512}, {2}, {128, 512}, {128, 512}}, kerneltest.AdamParams(0, 0)},
	{"softmax_xent", [][]int{{64, 10}, {64}, {64}, {64, 10}, {64}}, kerneltest.LossParams(64, 0)},
	// Of a step of gpt-char: two samples of 256 positions with 6 heads of 64, and 512 positions of 384 features.
	{"attention", [][]int{{2, 256, 384}, {2, 6, 256}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}}, kerneltest.HeadParams(6, 1, 256, 255)},
	{"attention.dx", [][]int{{2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 6, 256}, {2, 6, 256}}, kerneltest.HeadParams(6, 1, 256, 255)},
	{"attention.dq", [][]int{{2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 6, 256}, {2, 6, 256}}, kerneltest.HeadParams(6, 1, 256, 255)},
	{"attention.dkv", [][]int{{2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 6, 256}, {2, 6, 256}}, kerneltest.HeadParams(6, 1, 256, 255)},
	{"attention.drop", [][]int{{2, 256, 384}, {2, 6, 256}, {2, 256, 384}, {2, 256, 384}, {2, 256, 384}, {2, 6, 256}}, dropParams(6, 1, 256, 255)},
	{"layernorm", [][]int{{512, 384}, {512, 2}, {512, 384}, {384}, {384}}, kerneltest.RowParams(1, 1e-5)},
	{"layernorm.dx", [][]int{{512, 384}, {512, 384}, {512, 384}, {512, 2}, {384}}, kerneltest.FlagParams("center", 1)},
	{"layernorm.dw", [][]int{{384}, {512, 384}, {512, 384}, {512, 2}, {384}}, nil},
	{"gelu", [][]int{{512, 1536}, {512, 1536}}, nil},
	{"gelu.dx", [][]int{{512, 1536}, {512, 1536}, {512, 1536}}, nil},
	{"add", [][]int{{128, 512}, {128, 512}}, nil},
	{"sgd", [][]int{{128, 512}, {128, 512}, {2}, {128, 512}}, kerneltest.SGDParams(0.9, 0, 0)},
	{"load", [][]int{{64, 1, 28, 28}, {1000, 1, 28, 28}, {64}}, dag.Params{{Name: "divisor", Value: 255}}},
}

// BenchmarkKernels reports GFLOP/s of every variant over shapes of digits-cnn and
// dahl-cnn. ReLU is larger: a processor learns the signs of a small operand by heart.
func BenchmarkKernels(b *testing.B) {
	for _, c := range benchCases {
		k, _ := kernels.KernelByName(c.op)
		for i := range k.Variants {
			v := &k.Variants[i]
			for _, t := range []dag.DType{dag.Float32, dag.Float64} {
				s := kerneltest.New(k, t, c.shapes, kerneltest.FirstModes(k), c.params, 0)
				s.Fill(rand.New(rand.NewPCG(1, 2)))
				if err := kernels.Validate(&s.Spec); err != nil {
					b.Fatal(err)
				}
				if !s.Runs(v) {
					continue
				}
				flops, _ := k.Work(&s.Spec)
				call, run := s.Call(v), v.Run(t)
				b.Run(fmt.Sprintf("%s/%s/%s/%v", c.op, s.Spec.Key(), v.Name, t), func(b *testing.B) {
					for b.Loop() {
						run(call)
					}
					b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
