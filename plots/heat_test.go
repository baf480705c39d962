package plots

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"dahl/must"
)

// tinyHeat is the images per second of batches of 1, 16 and 64 on 1 to 5 cores: 1000·batch·cores/(batch + cores),
// of which the greatest is at 64 and 5. One cell is empty.
func tinyHeat() *Heat {
	h := &Heat{Title: "images per second over cores and batch", Summary: "a made-up machine", XLabel: "workers", YLabel: "batch",
		Quantity: Quantity{Name: "images/s", More: true}, Columns: []string{"1", "2", "3", "5"}, Rows: []string{"1", "16", "64"}}
	for _, batch := range []float64{1, 16, 64} {
		var row []float64
		for _, cores := range []float64{1, 2, 3, 5} {
			row = append(row, 1000*batch*cores/(batch+cores))
		}
		h.Values = append(h.Values, row)
	}
	h.Values[1][2] = math.NaN()
	return h
}

func TestHeatGolden(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, DrawHeat(&file, "png", tinyHeat()))
	wantGolden(t, "heat", file.Bytes())
}

// One value has no scale, and is drawn all the same.
func TestHeatOfOneValue(t *testing.T) {
	h := &Heat{Columns: []string{"1"}, Rows: []string{"1"}, Values: [][]float64{{7}}}
	if err := DrawHeat(io.Discard, "svg", h); err != nil {
		t.Error(err)
	}
}

func TestHeatRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Heat){
		"an infinite value": func(h *Heat) { h.Values[0][0] = math.Inf(-1) },
		"a short row":       func(h *Heat) { h.Values[1] = h.Values[1][:2] },
	} {
		h := tinyHeat()
		if spoil(h); DrawHeat(io.Discard, "svg", h) == nil {
			t.Errorf("%s was drawn", name)
		}
	}
	nothing := &Heat{Columns: []string{"1"}, Rows: []string{"1"}, Values: [][]float64{{math.NaN()}}}
	for _, h := range []*Heat{{}, nothing} {
		if err := DrawHeat(io.Discard, "svg", h); !errors.Is(err, ErrNoData) {
			t.Errorf("without values: %v, want ErrNoData", err)
		}
	}
}
