package schedule

import (
	"testing"
	"time"

	"dahl/platform"
)

// A copy over a route that names a link of 1 GB/s twice keeps it for 2 ns per byte: 1000
// bytes for 2 µs. Over a fatpipe nothing waits; the direction back of a duplex link is a
// line of its own.
func TestLinkNamedTwiceIsKeptTwice(t *testing.T) {
	for sharing, want := range map[platform.Sharing][2]time.Duration{
		platform.Shared:  {2 * time.Microsecond, 0},
		platform.Duplex:  {time.Microsecond, time.Microsecond},
		platform.Fatpipe: {0, 0},
	} {
		p := &platform.Platform{Memories: []platform.Memory{{Name: "ram"}, {Name: "hbm"}},
			Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 1}, {Name: "gpu", Kind: platform.CUDA, Count: 1, Memory: 1}},
			Links:   []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, Sharing: sharing}},
			Routes:  []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0, 0}}}}
		if err := p.Complete(); err != nil {
			t.Fatal(err)
		}
		m, f := newLineMaker(p), &flight{Transfer: Transfer{From: 0, To: 1, Bytes: 1000}}
		l := m.of(0, 1, false)
		l.start(f, 0)
		if got := [2]time.Duration{m.over[0][0].until, m.over[0][1].until}; got != want {
			t.Errorf("%v: the directions are kept until %v, want %v", sharing, got, want)
		}
		if l.end(); m.over[0][0].moving != 0 || m.over[0][1].moving != 0 {
			t.Errorf("%v: after the copy %+v", sharing, m.over[0])
		}
	}
}
