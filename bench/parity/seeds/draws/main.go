// Draws writes what dahl draws before it trains LeNet-5: initial weights and orders of the samples.
//
//	draws DIR SEEDS EPOCHS SAMPLES
//
// For each seed from 1 to SEEDS it writes DIR/dahl.SEED.weights.npz, with the names of PyTorch's
// state_dict, and DIR/dahl.SEED.order.npz, whose array "order" has for each epoch the index of the
// sample at each place (EPOCHS × SAMPLES, int32).
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/models"
	"dahl/nn/npz"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "draws:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: draws DIR SEEDS EPOCHS SAMPLES")
	}
	var counts [3]int // seeds, epochs, samples
	for i := range counts {
		n, err := strconv.Atoi(args[i+1])
		if err != nil || n < 1 {
			return fmt.Errorf("%q: want a number from 1", args[i+1])
		}
		counts[i] = n
	}
	m, err := models.ByName("lenet5")
	if err != nil {
		return err
	}
	for seed := uint64(1); seed <= uint64(counts[0]); seed++ {
		prefix := filepath.Join(args[0], fmt.Sprintf("dahl.%d.", seed))
		if err := npz.Write(prefix+"weights.npz", weights(m, seed)); err != nil {
			return err
		}
		if err := npz.Write(prefix+"order.npz", []npz.Array{orders(seed, counts[1], counts[2])}); err != nil {
			return err
		}
	}
	return nil
}

func weights(m *nn.Model, seed uint64) (arrays []npz.Array) {
	for _, p := range m.Parameters() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, seed)
		arrays = append(arrays, npz.NewArray(p.Name, dag.Float64, p.Shape, values))
	}
	return arrays
}

func orders(seed uint64, epochs, samples int) npz.Array {
	a := npz.Array{Name: "order", Type: dag.Int32, Shape: []int{epochs, samples}}
	order := make([]int32, samples)
	for epoch := range epochs {
		data.Shuffle(order, seed, epoch)
		for _, index := range order {
			a.Data = binary.LittleEndian.AppendUint32(a.Data, uint32(index))
		}
	}
	return a
}
