package train

import (
	"dahl/plan"
)

// tally counts the samples of one split in one epoch.
type tally struct {
	Samples int          `json:"images"`
	Correct int          `json:"correct"`           // positions
	Ignored int          `json:"ignored,omitempty"` // positions whose labels do not count
	Loss    exact        `json:"loss"`              // sum over the positions that count, divided by the positions of a sample
	Counted plan.Counted `json:"counted"`
}

func (c *tally) add(r StepResult, batch, positions int) {
	c.Samples += batch
	c.Correct += r.Correct
	c.Ignored += r.Ignored
	c.Loss += exact(r.Loss * inSamples(batch, r.Ignored, positions))
}

// means are the loss of a position and the share of correct positions, by the number of positions of a sample. Only positions
// that count are among them. Both means are 0 where none counts, as is the loss of such a step.
func (c *tally) means(positions int) (loss, accuracy float64) {
	counted := c.Samples*positions - c.Ignored
	if counted == 0 {
		return 0, 0
	}
	return float64(c.Loss) / inSamples(c.Samples, c.Ignored, positions), float64(c.Correct) / float64(counted)
}

// inSamples is the number of positions that count, in samples. It is the number of samples to the bit where all count.
func inSamples(samples, ignored, positions int) float64 {
	return float64(samples) - float64(ignored)/float64(positions)
}
