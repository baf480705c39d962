package cuda

import (
	"math"
	"testing"
)

// Peaks as the data sheets have them, in TFLOP/s and GB/s; they round to two or three
// digits. The clocks are the boost clocks that the same sheets name.
func TestPeaksOfDataSheets(t *testing.T) {
	for _, c := range []struct {
		gpu                          Properties
		float32s, float64s, gbPerSec float64
	}{
		{Properties{Name: "V100 SXM2", Capability: 70, Processors: 80, ClockHz: 1530e6, MemoryHz: 877e6, MemoryBits: 4096}, 15.7, 7.8, 900},
		{Properties{Name: "T4", Capability: 75, Processors: 40, ClockHz: 1590e6, MemoryHz: 5001e6, MemoryBits: 256}, 8.1, 0.2544, 320},
		{Properties{Name: "A100 PCIe 40 GB", Capability: 80, Processors: 108, ClockHz: 1410e6, MemoryHz: 1215e6, MemoryBits: 5120}, 19.5, 9.7, 1555},
		{Properties{Name: "RTX 3090", Capability: 86, Processors: 82, ClockHz: 1695e6, MemoryHz: 9751e6, MemoryBits: 384}, 35.6, 0.556, 936},
		{Properties{Name: "H100 SXM", Capability: 90, Processors: 132, ClockHz: 1980e6, MemoryHz: 2619e6, MemoryBits: 5120}, 67, 34, 3350},
	} {
		float32s, float64s := c.gpu.FlopsPerSec()
		for what, pair := range map[string][2]float64{"float32": {float32s / 1e12, c.float32s}, "float64": {float64s / 1e12, c.float64s}, "GB/s": {c.gpu.BytesPerSec() / 1e9, c.gbPerSec}} {
			if math.Abs(pair[0]/pair[1]-1) > 0.02 {
				t.Errorf("%s, %s: %.4g, the data sheet says %g", c.gpu.Name, what, pair[0], pair[1])
			}
		}
	}
}
