//go:build cuda

package calibrate

import (
	"context"
	"reflect"
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/platform"
)

// TestCalibrateCUDA measures a CUDA device, or the driver of the tests, end to end: every
// number is there, and what the device is takes the place of what the file said.
func TestCalibrateCUDA(t *testing.T) {
	if _, err := hardware.GPUs(); err != nil {
		t.Skip(err)
	}
	p := node(t, 1, 1)
	p.Devices[1].Kind = platform.CUDA
	must.Do(t, p.Complete())
	before := p.Links[0]
	c, err := Run(context.Background(), []*dag.Graph{layers(t)}, Options{Platform: p, Units: map[string]int{"gpu0": 1}, MaxTime: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Devices) != 1 {
		t.Fatalf("%d devices were measured", len(c.Devices))
	}
	d := c.Devices[0]
	t.Logf("%+v", d)
	if d.FirstUse.Context <= 0 || d.FirstUse.Kernels <= 0 || d.CapacityBytes <= 0 || d.FreeBytes > d.CapacityBytes {
		t.Errorf("%+v", d)
	}
	l := d.Launches
	if l.Tiny <= 0 || l.Chain <= 0 || l.RoundTrip <= 0 || l.ToDevice <= 0 || l.ToHost <= 0 {
		t.Errorf("launches %+v", l)
	}
	if d.Copies.Fit.BytesPerSec <= 0 || d.Copies.BothWays <= 0 || d.BytesPerSec <= 0 || d.FlopsPerSec["float32"] <= 0 || d.FlopsPerSec["float64"] <= 0 {
		t.Errorf("copies %+v, memory %g, speed %v", d.Copies, d.BytesPerSec, d.FlopsPerSec)
	}
	dev := c.Platform.Devices[1]
	if dev.FirstUse != d.FirstUse || dev.FlopsPerSec["float32"] != d.FlopsPerSec["float32"] || c.Platform.Memories[1].BandwidthBytesPerSec != d.BytesPerSec ||
		d.LinksKept || reflect.DeepEqual(c.Platform.Links[0], before) || c.Platform.Memories[1].CapacityBytes > p.Memories[1].CapacityBytes {
		t.Errorf("device %+v, memory %+v, link %+v", dev, c.Platform.Memories[1], c.Platform.Links[0])
	}
	variants := map[string]bool{}
	for _, m := range c.Platform.Models {
		variants[m.Variant] = true
		if m.Device != "gpu0" || m.MedianNs <= 0 || m.Count < 1 {
			t.Errorf("model %+v", m)
		}
	}
	if !variants["cuda"] || variants["ref"] || variants["go"] {
		t.Errorf("variants %v", variants)
	}
	if err := c.Platform.Complete(); err != nil {
		t.Error(err)
	}
}
