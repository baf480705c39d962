package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"dahl/train/metrics"
)

// curve is one training: its steps, and for each epoch the mean loss over the
// samples and the accuracy on the test samples.
type curve struct {
	steps      []metrics.Step
	losses     []float64
	accuracies []float64
}

// comparison is one network in one type, trained by dahl and by PyTorch.
type comparison struct {
	network, dtype string
	dahl           *curve
	torch          []*curve // the first in the given order of summation, the others in other ones
}

// readComparison reads the run directories whose path begins with the prefix DIR/NETWORK.TYPE, and
// refuses curves over different samples.
func readComparison(prefix string) (*comparison, error) {
	network, dtype, ok := strings.Cut(filepath.Base(prefix), ".")
	if !ok || dtype != float64Type && dtype != float32Type {
		return nil, fmt.Errorf("%s.%s: not named NETWORK.float64 or NETWORK.float32", prefix, dahlRun)
	}
	others, err := filepath.Glob(prefix + "." + reorderedRun)
	if err != nil {
		return nil, err
	}
	var runs []*curve
	for _, path := range append([]string{prefix + "." + dahlRun, prefix + "." + torchRun}, others...) {
		r, err := readCurve(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	c := &comparison{network, dtype, runs[0], runs[1:]}
	for _, r := range runs {
		if err := sameSamples(r, c.torch[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", prefix, err)
		}
	}
	return c, nil
}

func readCurve(dir string) (*curve, error) {
	steps, err := readFile(filepath.Join(dir, "steps.csv"), metrics.ReadSteps)
	if err != nil {
		return nil, err
	}
	accuracies, err := readFile(filepath.Join(dir, "epochs.csv"), readAccuracies)
	if err != nil {
		return nil, err
	}
	losses, err := epochMeans(steps)
	if err == nil && len(losses) != len(accuracies) {
		err = fmt.Errorf("steps of %d epochs, but %d rows of epochs", len(losses), len(accuracies))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &curve{steps, losses, accuracies}, nil
}

func readFile[T any](path string, read func(io.Reader) (T, error)) (content T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return content, err
	}
	defer f.Close()
	if content, err = read(f); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return content, err
}

// readAccuracies reads the column test_accuracy of an epochs table.
func readAccuracies(r io.Reader) ([]float64, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no header")
	}
	column := slices.Index(rows[0], "test_accuracy")
	if column < 0 {
		return nil, fmt.Errorf("no column test_accuracy in %q", rows[0])
	}
	accuracies := make([]float64, len(rows)-1)
	for i, row := range rows[1:] {
		if accuracies[i], err = strconv.ParseFloat(row[column], 64); err != nil {
			return nil, fmt.Errorf("epoch %d: test_accuracy %q is not a number", i+1, row[column])
		}
	}
	return accuracies, nil
}

// epochMeans is the mean loss over the samples of each epoch: a short last batch
// counts for as many samples as it has.
func epochMeans(steps []metrics.Step) ([]float64, error) {
	var means []float64
	sum, samples := 0.0, 0
	for i, s := range steps {
		if s.Epoch != len(means)+1 || s.Samples < 1 {
			return nil, fmt.Errorf("step %d: epoch %d with %d samples does not follow", s.Step, s.Epoch, s.Samples)
		}
		sum += float64(s.Loss * float64(s.Samples))
		samples += s.Samples
		if i == len(steps)-1 || steps[i+1].Epoch != s.Epoch {
			means = append(means, sum/float64(samples))
			sum, samples = 0, 0
		}
	}
	return means, nil
}

func sameSamples(a, b *curve) error {
	if len(a.steps) != len(b.steps) || len(a.steps) == 0 {
		return fmt.Errorf("%d steps against %d of PyTorch", len(a.steps), len(b.steps))
	}
	for i, s := range a.steps {
		if t := b.steps[i]; s.Epoch != t.Epoch || s.Step != t.Step || s.Samples != t.Samples {
			return fmt.Errorf("row %d: epoch %d, step %d, %d samples against PyTorch's epoch %d, step %d, %d samples",
				i+1, s.Epoch, s.Step, s.Samples, t.Epoch, t.Step, t.Samples)
		}
	}
	return nil
}

// relative is |a-b|/|b|; NaN anywhere stays NaN, so that it breaks every bound.
func relative(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a-b) / math.Abs(b)
}

// stepDifferences compares a curve with PyTorch's in the given order: the largest
// relative difference of a loss among the first earlySteps and among all, and
// how many steps count another number of correct samples.
func (c *comparison) stepDifferences(r *curve) (early, whole float64, counts int) {
	for i, s := range r.steps {
		t := c.torch[0].steps[i]
		whole = max(whole, relative(s.Loss, t.Loss))
		if i < earlySteps {
			early = whole
		}
		if s.Correct != t.Correct {
			counts++
		}
	}
	return early, whole, counts
}

// spread is the mean and the sample standard deviation of PyTorch's mean losses
// of an epoch over its runs; the deviation is 0 when there are too few.
func (c *comparison) spread(epoch int) (mean, deviation float64) {
	var losses []float64
	for _, r := range c.torch {
		losses = append(losses, r.losses[epoch])
	}
	mean, deviation = stat.MeanStdDev(losses, nil)
	if len(losses) < minimumRuns {
		deviation = 0
	}
	return mean, deviation
}

// accuracies is the range of PyTorch's test accuracies after an epoch.
func (c *comparison) accuracies(epoch int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, r := range c.torch {
		low, high = min(low, r.accuracies[epoch]), max(high, r.accuracies[epoch])
	}
	return low, high
}

// broken says in words which bounds of its type the comparison breaks.
func (c *comparison) broken() (found []string) {
	hold := func(holds bool, format string, args ...any) {
		if !holds {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	early, whole, counts := c.stepDifferences(c.dahl)
	if c.dtype == float32Type {
		hold(early <= float32Loss, "a loss of the first %d steps is %.2g off; the bound is %g", earlySteps, early, float32Loss)
		for e, loss := range c.dahl.losses {
			mean, deviation := c.spread(e)
			off, bound := relative(loss, mean), max(epochLoss, deviations*deviation/mean)
			hold(off <= bound, "the mean loss of epoch %d is %.2g off; the bound is %.2g", e+1, off, bound)
		}
		return found
	}
	hold(whole <= float64Loss, "a step's loss is %.2g off; the bound is %g", whole, float64Loss)
	hold(counts == 0, "%d steps count another number of correct samples", counts)
	for e, a := range c.dahl.accuracies {
		b := c.torch[0].accuracies[e]
		hold(a == b, "test accuracy %g after epoch %d; PyTorch's is %g", a, e+1, b)
	}
	return found
}
