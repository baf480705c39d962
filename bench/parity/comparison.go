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

	"dahl/nn"
)

// curve is one training: its steps, and for each epoch the mean loss over the
// images and the accuracy on the test images.
type curve struct {
	steps      []nn.StepMetrics
	losses     []float64
	accuracies []float64
}

// comparison is one network in one type, trained by dahl and by PyTorch.
type comparison struct {
	network, dtype string
	dahl, torch    *curve
	reordered      []*curve // PyTorch with another order of summation
}

// readComparison reads the run directories whose path begins with the prefix
// DIR/NETWORK.TYPE and refuses curves that are not over the same images.
func readComparison(prefix string) (*comparison, error) {
	network, dtype, ok := strings.Cut(filepath.Base(prefix), ".")
	if !ok || dtype != float64Type && dtype != float32Type {
		return nil, fmt.Errorf("%s.%s: not named NETWORK.float64 or NETWORK.float32", prefix, dahlRun)
	}
	c := &comparison{network: network, dtype: dtype}
	var err error
	if c.dahl, err = readCurve(prefix + "." + dahlRun); err != nil {
		return nil, err
	}
	if c.torch, err = readCurve(prefix + "." + torchRun); err != nil {
		return nil, err
	}
	others, err := filepath.Glob(prefix + "." + reorderedRun)
	if err != nil {
		return nil, err
	}
	for _, path := range others {
		r, err := readCurve(path)
		if err != nil {
			return nil, err
		}
		c.reordered = append(c.reordered, r)
	}
	for _, r := range append([]*curve{c.dahl}, c.reordered...) {
		if err := sameImages(r, c.torch); err != nil {
			return nil, fmt.Errorf("%s: %w", prefix, err)
		}
	}
	return c, nil
}

func readCurve(dir string) (*curve, error) {
	c := &curve{}
	err := readFile(filepath.Join(dir, "steps.csv"), func(r io.Reader) (err error) {
		c.steps, err = nn.ReadSteps(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = readFile(filepath.Join(dir, "epochs.csv"), func(r io.Reader) (err error) {
		c.accuracies, err = readAccuracies(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.losses, err = epochMeans(c.steps)
	if err == nil && len(c.losses) != len(c.accuracies) {
		err = fmt.Errorf("steps of %d epochs, but %d rows of epochs", len(c.losses), len(c.accuracies))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return c, nil
}

func readFile(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
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

// epochMeans is the mean loss over the images of each epoch: a short last batch
// counts for as many images as it has.
func epochMeans(steps []nn.StepMetrics) ([]float64, error) {
	var means []float64
	sum, images := 0.0, 0
	for i, s := range steps {
		if s.Epoch != len(means)+1 || s.Images < 1 {
			return nil, fmt.Errorf("step %d: epoch %d with %d images does not follow", s.Step, s.Epoch, s.Images)
		}
		sum += s.Loss * float64(s.Images)
		images += s.Images
		if i == len(steps)-1 || steps[i+1].Epoch != s.Epoch {
			means = append(means, sum/float64(images))
			sum, images = 0, 0
		}
	}
	return means, nil
}

func sameImages(a, b *curve) error {
	if len(a.steps) != len(b.steps) || len(a.steps) == 0 {
		return fmt.Errorf("%d steps against %d of PyTorch", len(a.steps), len(b.steps))
	}
	for i, s := range a.steps {
		if t := b.steps[i]; s.Epoch != t.Epoch || s.Step != t.Step || s.Images != t.Images {
			return fmt.Errorf("row %d: epoch %d, step %d, %d images against PyTorch's epoch %d, step %d, %d images",
				i+1, s.Epoch, s.Step, s.Images, t.Epoch, t.Step, t.Images)
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
// how many steps count another number of correct images.
func (c *comparison) stepDifferences(r *curve) (early, whole float64, counts int) {
	for i, s := range r.steps {
		t := c.torch.steps[i]
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
	runs := append([]*curve{c.torch}, c.reordered...)
	for _, r := range runs {
		mean += r.losses[epoch] / float64(len(runs))
	}
	if len(runs) < minimumRuns {
		return mean, 0
	}
	for _, r := range runs {
		d := r.losses[epoch] - mean
		deviation += d * d / float64(len(runs)-1)
	}
	return mean, math.Sqrt(deviation)
}

// accuracies is the range of PyTorch's test accuracies after an epoch.
func (c *comparison) accuracies(epoch int) (low, high float64) {
	low, high = c.torch.accuracies[epoch], c.torch.accuracies[epoch]
	for _, r := range c.reordered {
		low, high = min(low, r.accuracies[epoch]), max(high, r.accuracies[epoch])
	}
	return low, high
}

// broken says in words which bounds of its type the comparison breaks.
func (c *comparison) broken() []string {
	var found []string
	early, whole, counts := c.stepDifferences(c.dahl)
	if c.dtype == float32Type {
		if !(early <= float32Loss) {
			found = append(found, fmt.Sprintf("a loss of the first %d steps is %.2g off; the bound is %g", earlySteps, early, float32Loss))
		}
		for e, loss := range c.dahl.losses {
			mean, deviation := c.spread(e)
			off, bound := relative(loss, mean), max(epochLoss, deviations*deviation/mean)
			if !(off <= bound) {
				found = append(found, fmt.Sprintf("the mean loss of epoch %d is %.2g off; the bound is %.2g", e+1, off, bound))
			}
		}
		return found
	}
	if !(whole <= float64Loss) {
		found = append(found, fmt.Sprintf("a step's loss is %.2g off; the bound is %g", whole, float64Loss))
	}
	if counts > 0 {
		found = append(found, fmt.Sprintf("%d steps count another number of correct images", counts))
	}
	for e, a := range c.dahl.accuracies {
		if b := c.torch.accuracies[e]; a != b {
			found = append(found, fmt.Sprintf("test accuracy %g after epoch %d; PyTorch's is %g", a, e+1, b))
		}
	}
	return found
}
