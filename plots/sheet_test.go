package plots

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"testing"

	"dahl/must"
	"dahl/plots/paper"
)

// tinySheet is pictures of 5 by 7 pixels, in each of which one pixel is white, and two of 3 by 2.
func tinySheet() *Sheet {
	s := &Sheet{Title: "a made-up network: mistakes", Summary: "16 of 100"}
	for i := range 14 {
		m := image.NewGray(image.Rect(0, 0, 5, 7))
		m.Pix[i] = 255
		s.Pictures = append(s.Pictures, Picture{m, []string{fmt.Sprint("is ", i%3), fmt.Sprintf("said %d, 87 %%", i%5)}})
	}
	for range 2 {
		m := image.NewRGBA(image.Rect(0, 0, 3, 2))
		m.Set(1, 1, color.RGBA{200, 0, 0, 255})
		s.Pictures = append(s.Pictures, Picture{m, []string{"is 1"}})
	}
	return s
}

func TestSheet(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, DrawSheet(&file, paper.Page{Format: "png"}, tinySheet()))
	wantGolden(t, "sheet", file.Bytes())
	var again [2]bytes.Buffer
	for i := range again {
		must.Do(t, DrawSheet(&again[i], paper.Page{Format: "svg"}, tinySheet()))
	}
	if !bytes.Equal(again[0].Bytes(), again[1].Bytes()) || bytes.Count(again[0].Bytes(), []byte("<image")) != 16 {
		t.Error("two drawings differ, or have not 16 pictures")
	}
	if err := DrawSheet(io.Discard, paper.Page{Format: "svg"}, &Sheet{}); !errors.Is(err, ErrNoData) {
		t.Errorf("without pictures: %v", err)
	}
}
