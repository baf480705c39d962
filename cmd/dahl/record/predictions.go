package record

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"dahl/train"
)

// The files of an evaluation.
const (
	PredictionsFile = "predictions.csv"
	ConfusionFigure = "confusion.svg"
)

// WritePredictions writes a line for each of the positions of each sample.
func WritePredictions(out io.Writer, said []train.Prediction, positions int) error {
	b := bufio.NewWriter(out)
	fmt.Fprintln(b, "index,label,predicted,probability")
	for i, p := range said {
		b.WriteString(strconv.Itoa(i/positions) + "," + strconv.Itoa(int(p.Label)) + "," + strconv.Itoa(int(p.Predicted)) + "," + strconv.FormatFloat(float64(p.Probability), 'g', -1, 32) + "\n")
	}
	return b.Flush()
}
