package testmachine

import (
	"math/rand/v2"
	"testing"
)

// TestRandom: a thousand machines are all valid, and some have each part that may be absent.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	var sockets, clocks, sleeps, links, off, alike int
	for range 1000 {
		p := Random(t, r)
		links += len(p.Links)
		for i := range p.Devices {
			d := &p.Devices[i]
			if d.IsProcessor() && d.Memory > 0 {
				sockets++
			}
			clocks, sleeps = clocks+len(d.Clocks), sleeps+len(d.Sleeps)
			if d.MayBeOff {
				off++
			}
			if i > 0 && d.FlopsPerSec["float32"] == p.Devices[i-1].FlopsPerSec["float32"] {
				alike++
			}
		}
	}
	if sockets*clocks*sleeps*links*off*alike == 0 {
		t.Errorf("%d processors with memories of their own, %d clocks, %d sleep states, %d links, %d devices that may be off, %d equal ones", sockets, clocks, sleeps, links, off, alike)
	}
}
