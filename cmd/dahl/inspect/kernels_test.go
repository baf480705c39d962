package inspect

import (
	"strings"
	"testing"
)

// Calls of two devices by variants: dense 3 µs by cuda and 2 µs by cublas, which is faster;
// what was measured beside other busy units, or has no variant, is in no table.
func TestPrintByVariant(t *testing.T) {
	times := []KernelTime{
		{Op: "dense", Variant: "cublas", Type: "float32", Shape: "2x3", Device: "gpu", Active: 1, MedianS: 2e-6},
		{Op: "dense", Variant: "cuda", Type: "float32", Shape: "2x3", Device: "gpu", Active: 1, MedianS: 3e-6},
		{Op: "dense", Variant: "go", Type: "float32", Shape: "2x3", Device: "cpu", Active: 1, MedianS: 70e-6},
		{Op: "dense", Variant: "go", Type: "float32", Shape: "2x3", Device: "cpu", Active: 5, MedianS: 90e-6},
		{Op: "feed", Type: "float32", Shape: "7", Device: "cpu", Active: 1, MedianS: 11e-6},
		{Op: "relu", Variant: "cuda", Type: "float32", Shape: "5", Device: "gpu", Active: 1, MedianS: 1.3e-6},
	}
	var b strings.Builder
	printByVariant(&b, "title", times)
	want := `title

## gpu, us

| kernel | type | shape | cuda | cublas | fastest |
| --- | --- | --- | ---: | ---: | --- |
| dense | float32 | 2x3 | 3 | 2 | cublas |
| relu | float32 | 5 | 1.3 | | cuda |

## cpu, us

| kernel | type | shape | go | fastest |
| --- | --- | --- | ---: | --- |
| dense | float32 | 2x3 | 70 | go |
`
	if b.String() != want {
		t.Errorf("the tables:\n%s\nwant:\n%s", b.String(), want)
	}
}
