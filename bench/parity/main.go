// Parity compares the training curves of dahl and PyTorch: same initial weights, same order of the
// samples, same arithmetic type.
//
//	parity DIR
//
// DIR holds run directories NETWORK.TYPE.RUN with a steps.csv and an epochs.csv
// each, as run.sh makes them: RUN is dahl, torch, or order1, order2, ... for
// PyTorch with the samples of each batch in another order. The tables go to
// standard output as Markdown; the exit code is 1 when a bound is broken.
//
// In float64 rounding has no time to grow: every loss and every count of correct
// samples must agree. In float32 training at LeNet-5's rate is chaotic. After some
// hundred steps PyTorch does not agree with itself once the order of summation
// changes, so beyond the first steps dahl is one more run among PyTorch's.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The bounds, all relative to PyTorch.
const (
	float64Loss  = 1e-12 // every step
	float32Loss  = 1e-5  // the first earlySteps
	epochLoss    = 0.01  // float32: the mean loss of an epoch
	deviations   = 3     // or this many standard deviations of PyTorch's own runs, if more
	earlySteps   = 100
	minimumRuns  = 3 // of PyTorch, for a standard deviation that means something
	float64Type  = "float64"
	float32Type  = "float32"
	dahlRun      = "dahl"
	torchRun     = "torch"
	reorderedRun = "order*"
)

var errBroken = errors.New("a bound is broken")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: parity DIR")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

// run compares every network and type found in dir.
func run(out io.Writer, dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*."+dahlRun))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s holds no run directory NETWORK.TYPE.%s", dir, dahlRun)
	}
	var all []*comparison
	for _, path := range found {
		c, err := readComparison(path[:len(path)-len("."+dahlRun)])
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	writeTables(out, all)
	broken := false
	for _, c := range all {
		for _, b := range c.broken() {
			broken = true
			fmt.Fprintf(out, "\nbroken: %s in %s: %s\n", c.network, c.dtype, b)
		}
	}
	if broken {
		return errBroken
	}
	return nil
}

func writeTables(out io.Writer, all []*comparison) {
	fmt.Fprintf(out, "Largest relative difference of a step's loss; in brackets PyTorch's in other orders from PyTorch's in the given one.\n\n")
	fmt.Fprintf(out, "| network | type | steps | first %d steps | all steps | steps with another count of correct samples |\n", earlySteps)
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|")
	for _, c := range all {
		early, whole, counts := c.stepDifferences(c.dahl)
		var ownEarly, ownWhole float64
		ownCounts := 0
		for _, r := range c.torch[1:] {
			e, w, n := c.stepDifferences(r)
			ownEarly, ownWhole, ownCounts = max(ownEarly, e), max(ownWhole, w), max(ownCounts, n)
		}
		fmt.Fprintf(out, "| %s | %s | %d | %.1e (%.1e) | %.1e (%.1e) | %d (%d) |\n",
			c.network, c.dtype, len(c.torch[0].steps), early, ownEarly, whole, ownWhole, counts, ownCounts)
	}
	fmt.Fprintf(out, "\nEpochs: mean loss over the samples, and accuracy on the test samples. The deviation is the\n"+
		"standard deviation of PyTorch's runs, the given order among them; the last two columns are relative to their mean.\n\n")
	fmt.Fprintln(out, "| network | type | epoch | loss | PyTorch | difference | test accuracy | PyTorch | PyTorch's runs | loss from their mean | their deviation |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, c := range all {
		for e := range c.torch[0].losses {
			a, b := c.dahl.losses[e], c.torch[0].losses[e]
			mean, deviation := c.spread(e)
			low, high := c.accuracies(e)
			fmt.Fprintf(out, "| %s | %s | %d | %.6f | %.6f | %.1e | %.4f | %.4f | %.4f to %.4f | %.1e | %.1e |\n",
				c.network, c.dtype, e+1, a, b, relative(a, b), c.dahl.accuracies[e], c.torch[0].accuracies[e],
				low, high, relative(a, mean), deviation/mean)
		}
	}
}
