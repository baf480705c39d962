// Package metrics writes and reads the curves of a training: a row for each step, and a row for each epoch.
package metrics

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Step is one row of the training curve. Correct counts positions. Epoch and Step count from 1,
// Step over the whole run; Loss is the batch's mean before the update. Positions whose labels are ignored
// are in no mean and are never correct.
type Step struct {
	Epoch, Step, Samples int
	Loss                 float64
	Correct              int
}

// Epoch is one row of the epochs' table. Losses are means over all
// positions whose labels count, and accuracies are fractions of these positions. Steps, Samples, Seconds and Joules cover the training steps that count: all
// but the first of each graph in the run, which warms up. Their sums over all epochs are the sums of the run.
type Epoch struct {
	Epoch                  int
	Loss, Accuracy         float64
	Tested                 bool // false: the test columns are left empty
	TestLoss, TestAccuracy float64
	Steps, Samples         int
	Seconds                float64
	Joules                 float64 // by the platform's powers
	Modelled               bool    // false: these are not known, and the column is left empty
}

// SamplesPerSec is NaN where no step of the epoch counts.
func (e *Epoch) SamplesPerSec() float64 { return float64(e.Samples) / e.Seconds }

var (
	stepColumns  = []string{"epoch", "step", "images", "loss", "correct"}
	epochColumns = []string{"epoch", "loss", "accuracy", "test_loss", "test_accuracy",
		"steps", "images", "seconds", "images_per_s", "modelled_joules"}
)

// Writer writes rows of metrics as CSV. Floats are the shortest decimals
// that read back as the same float64.
type Writer struct {
	w   *bufio.Writer
	row []byte
}

// NewStepWriter writes the header line of per-step metrics, unless the file goes on; rows follow
// by Step.
func NewStepWriter(w io.Writer, goesOn bool) (*Writer, error) {
	return newMetrics(w, goesOn, stepColumns)
}

// NewEpochWriter writes the header line of per-epoch metrics, unless the file goes on; rows follow
// by Epoch.
func NewEpochWriter(w io.Writer, goesOn bool) (*Writer, error) {
	return newMetrics(w, goesOn, epochColumns)
}

func newMetrics(w io.Writer, goesOn bool, columns []string) (*Writer, error) {
	m := &Writer{w: bufio.NewWriter(w)}
	if goesOn {
		return m, nil
	}
	_, err := m.w.WriteString(strings.Join(columns, ",") + "\n")
	return m, err
}

// Step writes one row. It allocates nothing in the long run.
func (m *Writer) Step(s Step) error {
	m.row = m.row[:0]
	m.int(s.Epoch)
	m.int(s.Step)
	m.int(s.Samples)
	m.float(s.Loss)
	m.int(s.Correct)
	return m.endRow()
}

// Epoch writes one row and flushes it, so that an interrupted run keeps it.
func (m *Writer) Epoch(e Epoch) error {
	m.row = m.row[:0]
	m.int(e.Epoch)
	m.float(e.Loss)
	m.float(e.Accuracy)
	m.optional(e.TestLoss, e.Tested)
	m.optional(e.TestAccuracy, e.Tested)
	m.int(e.Steps)
	m.int(e.Samples)
	m.float(e.Seconds)
	m.optional(e.SamplesPerSec(), e.Steps > 0)
	m.optional(e.Joules, e.Modelled)
	return errors.Join(m.endRow(), m.Flush())
}

// Flush writes the buffered rows.
func (m *Writer) Flush() error { return m.w.Flush() }

func (m *Writer) int(v int) {
	m.row = append(strconv.AppendInt(m.row, int64(v), 10), ',')
}

func (m *Writer) float(v float64) {
	m.row = append(strconv.AppendFloat(m.row, v, 'g', -1, 64), ',')
}

func (m *Writer) optional(v float64, known bool) {
	if known {
		m.float(v)
	} else {
		m.row = append(m.row, ',')
	}
}

func (m *Writer) endRow() error {
	m.row[len(m.row)-1] = '\n' // in place of the last comma
	_, err := m.w.Write(m.row)
	return err
}

// ReadSteps reads per-step metrics, written by Step or by the PyTorch twin.
func ReadSteps(r io.Reader) ([]Step, error) {
	return readMetrics(r, "step", stepColumns, func(c *cells) (s Step) {
		s.Epoch, s.Step, s.Samples, s.Loss, s.Correct = c.int(0), c.int(1), c.int(2), c.float(3), c.int(4)
		return s
	})
}

// ReadEpochs reads per-epoch metrics, written by Epoch.
func ReadEpochs(r io.Reader) ([]Epoch, error) {
	return readMetrics(r, "epoch", epochColumns, func(c *cells) Epoch {
		e := Epoch{Epoch: c.int(0), Loss: c.float(1), Accuracy: c.float(2), Tested: c.row[3] != "", Steps: c.int(5), Samples: c.int(6), Seconds: c.float(7), Modelled: c.row[9] != ""}
		if e.Tested {
			e.TestLoss, e.TestAccuracy = c.float(3), c.float(4)
		}
		if e.Modelled {
			e.Joules = c.float(9)
		}
		return e
	})
}

// readMetrics reads a table of metrics.
func readMetrics[T any](r io.Reader, of string, columns []string, parse func(*cells) T) (all []T, err error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%s metrics: %w", of, err)
	}
	if !slices.Equal(header, columns) {
		return nil, fmt.Errorf("%s metrics: columns %q; they should be %q", of, header, columns)
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s metrics: %w", of, err)
		}
		c := cells{row: row}
		all = append(all, parse(&c))
		if c.bad != "" {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("%s metrics: line %d: column %s: %q is not a number", of, line, columns[c.column], c.bad)
		}
	}
}

// cells is a row of a table; bad is the first cell that was asked for and is no number.
type cells struct {
	row    []string
	bad    string
	column int
}

func (c *cells) int(i int) int {
	v, err := strconv.Atoi(c.row[i])
	c.note(i, err)
	return v
}

func (c *cells) float(i int) float64 {
	v, err := strconv.ParseFloat(c.row[i], 64)
	c.note(i, err)
	return v
}

func (c *cells) note(i int, err error) {
	if err != nil && c.bad == "" {
		c.bad, c.column = cmp.Or(c.row[i], " "), i
	}
}
