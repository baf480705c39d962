package recording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// board is a GPU by its data sheet: speeds without sparsity, bfloat16 with tensor cores.
type board struct {
	name                string // a part of the name that its driver gives
	float32, bfloat16   float64
	bytesPerSec, linkBy float64
	idle, busy          float64 // watts; idle is a guess
}

// boards are GPUs by the public data sheets of their makers, as remembered. A name that holds another one comes first.
var boards = []board{
	{"B200", 80e12, 2250e12, 8000e9, 64e9, 140, 1000},
	{"H200", 67e12, 989e12, 4800e9, 64e9, 75, 700},
	{"H100 PCIe", 51e12, 756e12, 2000e9, 64e9, 50, 350},
	{"H100", 67e12, 989e12, 3350e9, 64e9, 70, 700},
	{"A100-SXM4-80GB", 19.5e12, 312e12, 2039e9, 32e9, 50, 400},
	{"A100-PCIE", 19.5e12, 312e12, 1555e9, 32e9, 35, 250},
	{"A100", 19.5e12, 312e12, 1555e9, 32e9, 50, 400},
	{"A10G", 31.5e12, 125e12, 600e9, 32e9, 20, 300},
	{"L40S", 91.6e12, 362e12, 864e9, 32e9, 30, 350},
	{"L4", 30.3e12, 121e12, 300e9, 32e9, 12, 72},
	{"V100", 15.7e12, 125e12, 900e9, 16e9, 40, 300},
	{"P100", 9.3e12, 18.7e12, 732e9, 16e9, 30, 250},
	{"T4", 8.1e12, 65e12, 320e9, 16e9, 10, 70},
	{"RTX 2080 Ti", 13.4e12, 54e12, 616e9, 16e9, 20, 250},
	{"RTX 3090", 35.6e12, 71e12, 936e9, 32e9, 25, 350},
	{"RTX 4090", 82.6e12, 165e12, 1008e9, 32e9, 25, 450},
	{"MI300X", 163.4e12, 1307e12, 5300e9, 64e9, 140, 750},
	{"MI250X", 47.9e12, 383e12, 3277e9, 32e9, 90, 560},
}

// hostDevice is the name of the host's cores, as in platform files. It is also their kind.
const hostDevice = platform.CPU

// unknownBoard stands for a GPU that is not among the boards.
var unknownBoard = board{"", 15e12, 60e12, 900e9, 16e9, 30, 300}

// Guesses about the host, of which a recording says nothing.
const (
	coreFlops       = 50e9
	hostBytesPerSec = 100e9
	hostWatts       = 100
	coreIdleWatts   = 2
	coreBusyWatts   = 12
)

// boardOf is the data sheet of a GPU by the name that its driver gives.
func (t *timeline) boardOf(device int) board {
	for _, g := range t.gpus {
		for _, b := range boards {
			if g.ID == device && strings.Contains(g.Name, b.name) {
				return b
			}
		}
	}
	return unknownBoard
}

// devices lists the GPUs that worked, by their numbers in the file.
func (t *timeline) devices() (list []int) {
	for _, s := range t.streams {
		list = append(list, s.device)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// cores is how many threads had tasks.
func (t *timeline) cores() (n int) {
	for i := range t.threads {
		if len(t.byThread[i]) > 0 {
			n++
		}
	}
	return n
}

// addGPU adds a GPU with its memory and its way to the host's.
func (t *timeline) addGPU(p *platform.Platform, number, device int) {
	b := t.boardOf(device)
	memory := int64(0)
	for _, g := range t.gpus {
		if g.ID == device {
			memory = g.MemoryBytes
		}
	}
	at := platform.MemoryID(len(p.Memories))
	p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("hbm%d", number), CapacityBytes: memory, BandwidthBytesPerSec: b.bytesPerSec})
	d := platform.Device{
		Name: fmt.Sprintf("gpu%d", number), Kind: platform.CUDA, Count: t.concurrent(device), Memory: at, Ordinal: number,
		FlopsPerSec: map[string]float64{dag.Float32.String(): b.float32, dag.BFloat16.String(): b.bfloat16},
		IdleWatts:   b.idle, Busy: platform.BusyPower{UnitWatts: b.busy}, PowerSource: platform.Guess,
	}
	if d.Count > 1 {
		d.IdleWatts = b.idle / float64(d.Count)
		d.Busy = platform.BusyPower{FirstWatts: b.busy, AllWatts: b.busy, WholeDevice: true}
	}
	p.Devices = append(p.Devices, d)
	link := platform.LinkID(len(p.Links))
	p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("pcie%d", number), BandwidthBytesPerSec: b.linkBy, Latency: 8 * time.Microsecond, Sharing: platform.Duplex})
	p.Routes = append(p.Routes, platform.Route{From: 0, To: at, Links: []platform.LinkID{link}})
}

// concurrent is the greatest number of pieces of a GPU's work at one time, with the gaps before them.
func (t *timeline) concurrent(device int) int {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for i := range t.tasks {
		if k := &t.tasks[i]; k.stream >= 0 && t.streams[k.stream].device == device && k.end > k.start-k.gap {
			changes = append(changes, change{k.start - k.gap, 1}, change{k.end, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	most, now := 1, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
