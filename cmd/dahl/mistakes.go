package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/plots"
	"dahl/rundir"
	"dahl/train"
)

// mostMistakesDrawn bounds the sheet of mistakes.
const mostMistakesDrawn = 48

// writeMistakes draws the samples that were predicted wrong, the surest first, where they are pictures with one label.
func (t *trainer) writeMistakes(dir *rundir.Dir) error {
	test := t.w.Data.Test
	if len(t.Predictions) != test.Len() {
		return nil
	}
	var wrong []int32
	for i, p := range t.Predictions {
		if p.Label >= 0 && p.Label != p.Predicted {
			wrong = append(wrong, int32(i))
		}
	}
	said := func(i int32) *train.Prediction { return &t.Predictions[i] }
	slices.SortStableFunc(wrong, func(a, b int32) int { return cmp.Compare(said(b).Probability, said(a).Probability) })
	drawn := wrong[:min(len(wrong), mostMistakesDrawn)]
	pictures, err := test.Pictures(drawn)
	if err != nil || len(pictures) == 0 {
		return err
	}
	sheet := &plots.Sheet{Title: fmt.Sprintf("%s on %s: mistakes", t.w.Model.Name, test.Name),
		Summary: fmt.Sprintf("%s of %s, the surest first", naming.Thousands(len(wrong)), naming.Count(test.Len(), "sample"))}
	if len(drawn) < len(wrong) {
		sheet.Summary += fmt.Sprintf("; %d are shown", len(drawn))
	}
	for k, i := range drawn {
		p := said(i)
		sheet.Pictures = append(sheet.Pictures, plots.Picture{Image: pictures[k], Lines: []string{
			fmt.Sprintf("%d: is %d,", i, p.Label), fmt.Sprintf("said %d, %.0f %%", p.Predicted, 100*p.Probability)}})
	}
	return dir.Write(record.MistakesFile, func(out io.Writer) error { return plots.DrawSheet(out, record.Screen, sheet) })
}
