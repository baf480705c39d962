package platform_test

import (
	"math"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
	"dahl/platform/fit"
)

// TestWithWays: two nodes at one switch. A way is the links of both nodes and the switch: 2 + 1 + 2 us and 10 GB/s in the file.
// Measured are 15 us, three times as long, and 4 GB/s, 0.4 times as fast. The switch has the bandwidth of its three links together, which nothing has measured.
func TestWithWays(t *testing.T) {
	const file = `name = "pair"
[[node]]
name = "a"
[[node]]
name = "b"
[[node]]
name = "c"
[[memory]]
name = "a.ram"
node = "a"
bandwidth = "10 GB/s"
[[memory]]
name = "b.ram"
node = "b"
bandwidth = "10 GB/s"
[[memory]]
name = "c.ram"
node = "c"
bandwidth = "10 GB/s"
[[device]]
name = "a.cpu"
kind = "cpu"
count = 1
memory = "a.ram"
speed = { float32 = "1 GF/s" }
[[switch]]
name = "sw"
latency = "1 us"
[[link]]
name = "la"
from = "a"
to = "sw"
bandwidth = "10 GB/s"
latency = "2 us"
[[link]]
name = "lb"
from = "b"
to = "sw"
bandwidth = "20 GB/s"
latency = "2 us"
[[link]]
name = "lc"
from = "c"
to = "sw"
bandwidth = "7 GB/s"
latency = "5 us"
`
	p := must.Get(platform.Parse([]byte(file), "pair.toml"))(t)
	a, b := platform.MemoryID(0), platform.MemoryID(1)
	q := must.Get(p.WithWays([]platform.MeasuredWay{{From: a, To: b, Fit: fit.Copies{Latency: 15 * time.Microsecond, BytesPerSec: 4e9}}}))(t)
	if got, want := q.RouteTime(a, b, 4_000_000), 1015*time.Microsecond; got != want {
		t.Errorf("4 MB take %v, want %v", got, want)
	}
	for _, want := range []struct {
		name        string
		latency     time.Duration
		bytesPerSec float64
	}{{"la", 6000, 4e9}, {"lb", 6000, 8e9}, {"lc", 5000, 7e9}, {"sw", 3000, 37e9}} {
		for _, l := range q.Links {
			if l.Name == want.name && (l.Latency != want.latency || math.Abs(l.BandwidthBytesPerSec-want.bytesPerSec) > 1) {
				t.Errorf("%s has %v and %g B/s, want %v and %g", l.Name, l.Latency, l.BandwidthBytesPerSec, want.latency, want.bytesPerSec)
			}
		}
	}
	if before := p.RouteTime(a, b, 0); before != 5*time.Microsecond {
		t.Errorf("the platform itself has changed: %v", before)
	}
}
