package hardware

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"dahl/execute/driver"
	"dahl/platform"
)

// GPUs lists the GPUs that the drivers show, by kind and ordinal. Without a GPU the error gives the
// reason.
func GPUs() (gpus []driver.GPU, err error) {
	for k, b := range eachBackend {
		if b.GPUs == nil {
			continue
		}
		of, none := b.GPUs()
		for i := range of {
			of[i].Kind = k.Name
		}
		gpus, err = append(gpus, of...), errors.Join(err, none)
	}
	if gpus != nil {
		return gpus, nil
	}
	return nil, err
}

// The driver does not tell these numbers of a GPU and its link. Calibration measures them.
const (
	guessLinkBytesPerSec = 12e9
	guessLinkLatency     = 10 * time.Microsecond
	guessLaunch          = 5 * time.Microsecond
	guessGPUFlopsPerSec  = 5e12 // float32, where the driver tells no clock; a 32nd of it in float64
	guessGPUBytesPerSec  = 300e9
	guessGPUIdleWatts    = 40
	guessGPUBusyWatts    = 250
)

// AddGPUs adds the GPUs that the drivers show to a platform: gpu0 … with memories hbm0 … and
// links pcie0 … to the host memory. Sizes and names come from the driver. Speeds and bandwidths
// are peaks. Links and powers are guesses. AddGPUs fails where
// there is no GPU, and says why.
func AddGPUs(p *platform.Platform) error {
	gpus, err := GPUs()
	if err != nil {
		return err
	}
	return addGPUs(p, gpus)
}

func addGPUs(p *platform.Platform, gpus []driver.GPU) error {
	host, ordinals := p.HostMemory(), map[string]int{} // by kind
	for i := range gpus {
		g := &gpus[i]
		memory, link := platform.MemoryID(len(p.Memories)), platform.LinkID(len(p.Links))
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("hbm%d", i), CapacityBytes: g.MemoryBytes, BandwidthBytesPerSec: cmp.Or(g.BytesPerSec, guessGPUBytesPerSec)})
		p.Devices = append(p.Devices, platform.Device{
			Name: fmt.Sprintf("gpu%d", i), Kind: g.Kind, Count: 1, Memory: memory, Ordinal: ordinals[g.Kind],
			FlopsPerSec: map[string]float64{
				"float32": cmp.Or(g.Float32FlopsPerSec, guessGPUFlopsPerSec), "float64": cmp.Or(g.Float64FlopsPerSec, guessGPUFlopsPerSec/32)},
			L2Bytes: g.L2Bytes, Dispatch: guessLaunch,
			CopyEnginesIn: 1, CopyEnginesOut: 1,
			IdleWatts: guessGPUIdleWatts, Busy: platform.BusyPower{UnitWatts: guessGPUBusyWatts}, PowerSource: platform.Guess,
		})
		ordinals[g.Kind]++
		p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("pcie%d", i), BandwidthBytesPerSec: guessLinkBytesPerSec,
			Latency: guessLinkLatency, Sharing: platform.Duplex})
		p.Routes = append(p.Routes, platform.Route{From: host, To: memory, Links: []platform.LinkID{link}})
	}
	return p.Complete()
}
