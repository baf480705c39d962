package record

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dahl/train"
)

// The files of an evaluation: the table of its predictions, and the pictures of its mistakes.
const (
	PredictionsFile = "predictions.csv"
	MistakesFile    = "mistakes.svg"
)

var predictionsColumns = []string{"index", "label", "predicted", "probability"}

// WritePredictions writes a line for each of the positions of each sample.
func WritePredictions(out io.Writer, said []train.Prediction, positions int) error {
	b := bufio.NewWriter(out)
	fmt.Fprintln(b, strings.Join(predictionsColumns, ","))
	for i, p := range said {
		b.WriteString(strconv.Itoa(i/positions) + "," + strconv.Itoa(int(p.Label)) + "," + strconv.Itoa(int(p.Predicted)) + "," + strconv.FormatFloat(float64(p.Probability), 'g', -1, 32) + "\n")
	}
	return b.Flush()
}

// ReadPredictions reads what WritePredictions wrote.
func ReadPredictions(in io.Reader, name string) ([]train.Prediction, error) {
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var said []train.Prediction
	for i, row := range rows[min(1, len(rows)):] { // below the header
		var label int64 // -1 is ignored
		var predicted uint64
		var errL, errP error
		if len(row) == len(predictionsColumns) {
			label, errL = strconv.ParseInt(row[1], 10, 17)
			predicted, errP = strconv.ParseUint(row[2], 10, 16)
		}
		if len(row) != len(predictionsColumns) || cmp.Or(errL, errP) != nil || label < -1 {
			return nil, fmt.Errorf("%s:%d: want %s", name, i+2, strings.Join(predictionsColumns, ","))
		}
		said = append(said, train.Prediction{Label: int32(label), Predicted: int32(predicted)})
	}
	return said, nil
}
