package nn

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// StepMetrics is one row of the training curve. Epoch and Step count from 1,
// Step over the whole run; Loss is the batch's mean before the update.
type StepMetrics struct {
	Epoch, Step, Images int
	Loss                float64
	Correct             int
}

// EpochMetrics is one row of the epochs' table. Losses are means over the
// samples, accuracies fractions.
type EpochMetrics struct {
	Epoch                  int
	Loss, Accuracy         float64
	Tested                 bool // false: the test columns are left empty
	TestLoss, TestAccuracy float64
	Seconds, ImagesPerSec  float64
	Joules                 float64
	JoulesSource           string // measured or modelled; empty: unavailable, and so is Joules
}

var (
	stepColumns  = []string{"epoch", "step", "images", "loss", "correct"}
	epochColumns = []string{"epoch", "loss", "accuracy", "test_loss", "test_accuracy",
		"seconds", "images_per_s", "joules", "joules_source"}
)

// MetricsWriter writes rows of metrics as CSV. Floats are the shortest decimals
// that read back as the same float64.
type MetricsWriter struct {
	w   *bufio.Writer
	row []byte
}

// NewStepWriter writes the header line of per-step metrics; rows follow by Step.
func NewStepWriter(w io.Writer) (*MetricsWriter, error) { return newMetrics(w, stepColumns) }

// NewEpochWriter writes the header line of per-epoch metrics; rows follow by Epoch.
func NewEpochWriter(w io.Writer) (*MetricsWriter, error) { return newMetrics(w, epochColumns) }

func newMetrics(w io.Writer, columns []string) (*MetricsWriter, error) {
	m := &MetricsWriter{w: bufio.NewWriter(w)}
	_, err := m.w.WriteString(strings.Join(columns, ",") + "\n")
	return m, err
}

// Step writes one row. It allocates nothing in the long run.
func (m *MetricsWriter) Step(s StepMetrics) error {
	m.row = m.row[:0]
	m.int(s.Epoch)
	m.int(s.Step)
	m.int(s.Images)
	m.float(s.Loss)
	m.int(s.Correct)
	return m.endRow()
}

// Epoch writes one row and flushes it, so that an interrupted run keeps it.
func (m *MetricsWriter) Epoch(e EpochMetrics) error {
	m.row = m.row[:0]
	m.int(e.Epoch)
	m.float(e.Loss)
	m.float(e.Accuracy)
	m.optional(e.TestLoss, e.Tested)
	m.optional(e.TestAccuracy, e.Tested)
	m.float(e.Seconds)
	m.float(e.ImagesPerSec)
	m.optional(e.Joules, e.JoulesSource != "")
	m.row = append(append(m.row, e.JoulesSource...), ',')
	return errors.Join(m.endRow(), m.Flush())
}

// Flush writes the buffered rows.
func (m *MetricsWriter) Flush() error { return m.w.Flush() }

func (m *MetricsWriter) int(v int) {
	m.row = append(strconv.AppendInt(m.row, int64(v), 10), ',')
}

func (m *MetricsWriter) float(v float64) {
	m.row = append(strconv.AppendFloat(m.row, v, 'g', -1, 64), ',')
}

func (m *MetricsWriter) optional(v float64, known bool) {
	if known {
		m.float(v)
	} else {
		m.row = append(m.row, ',')
	}
}

func (m *MetricsWriter) endRow() error {
	m.row[len(m.row)-1] = '\n' // in place of the last comma
	_, err := m.w.Write(m.row)
	return err
}

// ReadSteps reads per-step metrics, written by Step or by the PyTorch twin.
func ReadSteps(r io.Reader) ([]StepMetrics, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("step metrics: %w", err)
	}
	if !slices.Equal(header, stepColumns) {
		return nil, fmt.Errorf("step metrics: columns %q; they should be %q", header, stepColumns)
	}
	var steps []StepMetrics
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return steps, nil
		}
		if err != nil {
			return nil, fmt.Errorf("step metrics: %w", err)
		}
		s, err := parseStep(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("step metrics: line %d: %w", line, err)
		}
		steps = append(steps, s)
	}
}

func parseStep(row []string) (s StepMetrics, err error) {
	ints := [...]*int{0: &s.Epoch, 1: &s.Step, 2: &s.Images, 4: &s.Correct}
	for i, field := range row {
		if ints[i] == nil {
			s.Loss, err = strconv.ParseFloat(field, 64)
		} else {
			*ints[i], err = strconv.Atoi(field)
		}
		if err != nil {
			return s, fmt.Errorf("column %s: %q is not a number", stepColumns[i], field)
		}
	}
	return s, nil
}
