package words

import (
	"strings"
	"testing"
	"time"

	"dahl/energy/meter"
	"dahl/execute/calibrate"
	"dahl/must"
	"dahl/platform"
	"dahl/platform/fit"
	"dahl/train"
)

// TestPrintMeasuredPower: what a meter has shown, and the links that could not be told apart.
func TestPrintMeasuredPower(t *testing.T) {
	p := &platform.Platform{Memories: []platform.Memory{{Name: "hbm"}}, Devices: []platform.Device{{Name: "gpu0", Kind: "cuda", Count: 1}}}
	fit := fit.Copies{Latency: 9 * time.Microsecond, BytesPerSec: 25.1e9, RelError: 0.03, MaxError: 0.08}
	d := &calibrate.Device{Device: "gpu0", Name: "some GPU", CapacityBytes: 40e9, FreeBytes: 39e9, LinksKept: true, Crowded: 1.7,
		Copies: calibrate.Copies{Sizes: []int64{4, 64e6}, InFit: fit, OutFit: fit, Fit: fit, BothWays: 1.9, Strided: 1.25},
		Energy: &meter.CallEnergy{IdleWatts: 41, Watts: 330, Joules: 0.5, ErrorJoules: 0.01, Meter: "counter"}}
	var b strings.Builder
	meters := train.GPUMeters{platform.CUDA: {Meters: []meter.GPUMeters{{GPU: meter.GPU{SMClockMHz: 1410, MaxSMClockMHz: 1980, PowerLimitWatts: 700, TemperatureCelsius: 43}}}}}
	PrintDevice(&b, p, d, meters)
	for _, want := range []string{"gpu0: some GPU, 40 GB, 39 GB free", "4 B to 64 MB: in 9 us + bytes/25.1 GB/s (±3 %, at most 8 %)", "1.90 times as long: shared",
		"rows of 4 KiB 1.25 times", "beside the other devices 1.70 times", "several in a row", "idle 41 W, largest product 330 W (0.5 ± 0.01 J) by counter", "clock 1410 MHz of 1980, limit 700 W, 43 °C, as found"} {
		must.Contain(t, b.String(), want)
	}
}
