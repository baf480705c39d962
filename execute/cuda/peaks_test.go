//go:build cuda

package cuda

import (
	"math"
	"testing"

	"dahl/execute/driver"
)

// Peaks as the data sheets have them, in TFLOP/s and GB/s; they round to two or three
// digits. The clocks are the boost clocks that the same sheets name.
func TestPeaksOfDataSheets(t *testing.T) {
	for _, c := range []struct {
		gpu                          driver.GPU
		peak                         peak
		float32s, float64s, gbPerSec float64
	}{
		{driver.GPU{Name: "V100 SXM2", Capability: 70}, peak{80, 1530e6, 877e6, 4096}, 15.7, 7.8, 900},
		{driver.GPU{Name: "T4", Capability: 75}, peak{40, 1590e6, 5001e6, 256}, 8.1, 0.2544, 320},
		{driver.GPU{Name: "A100 PCIe 40 GB", Capability: 80}, peak{108, 1410e6, 1215e6, 5120}, 19.5, 9.7, 1555},
		{driver.GPU{Name: "RTX 3090", Capability: 86}, peak{82, 1695e6, 9751e6, 384}, 35.6, 0.556, 936},
		{driver.GPU{Name: "H100 SXM", Capability: 90}, peak{132, 1980e6, 2619e6, 5120}, 67, 34, 3350},
	} {
		c.peak.put(&c.gpu)
		for what, pair := range map[string][2]float64{"float32": {c.gpu.Float32FlopsPerSec / 1e12, c.float32s}, "float64": {c.gpu.Float64FlopsPerSec / 1e12, c.float64s}, "GB/s": {c.gpu.BytesPerSec / 1e9, c.gbPerSec}} {
			if math.Abs(pair[0]/pair[1]-1) > 0.02 {
				t.Errorf("%s, %s: %.4g, the data sheet says %g", c.gpu.Name, what, pair[0], pair[1])
			}
		}
	}
}
