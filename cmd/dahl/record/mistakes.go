package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"dahl/naming"
	"dahl/nn/data"
	"dahl/plots"
	"dahl/rundir"
	"dahl/train"
)

// MostMistakesDrawn bounds the sheet of mistakes.
const MostMistakesDrawn = 48

// WriteMistakes draws the samples of a test set that a model predicted wrong, the surest first, where they are pictures with one label.
func WriteMistakes(dir *rundir.Dir, model string, test *data.Dataset, predicted []train.Prediction) error {
	if len(predicted) != test.Len() {
		return nil
	}
	var wrong []int32
	for i, p := range predicted {
		if p.Label >= 0 && p.Label != p.Predicted {
			wrong = append(wrong, int32(i))
		}
	}
	said := func(i int32) *train.Prediction { return &predicted[i] }
	slices.SortStableFunc(wrong, func(a, b int32) int { return cmp.Compare(said(b).Probability, said(a).Probability) })
	drawn := wrong[:min(len(wrong), MostMistakesDrawn)]
	pictures, err := test.Pictures(drawn)
	if err != nil || len(pictures) == 0 {
		return err
	}
	sheet := &plots.Sheet{Title: fmt.Sprintf("%s on %s: mistakes", model, test.Name),
		Summary: fmt.Sprintf("%s of %s, the surest first", naming.Thousands(len(wrong)), naming.Count(test.Len(), "sample"))}
	if len(drawn) < len(wrong) {
		sheet.Summary += fmt.Sprintf("; %d are shown", len(drawn))
	}
	for k, i := range drawn {
		p := said(i)
		sheet.Pictures = append(sheet.Pictures, plots.Picture{Image: pictures[k], Lines: []string{
			fmt.Sprintf("%d: is %d,", i, p.Label), fmt.Sprintf("said %d, %.0f %%", p.Predicted, 100*p.Probability)}})
	}
	return dir.Write(MistakesFile, func(out io.Writer) error { return plots.DrawSheet(out, Screen, sheet) })
}
