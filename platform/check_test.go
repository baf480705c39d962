package platform

import (
	"math"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

// Each change to a good platform is found by Check and by Complete.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Platform)
		want   string
	}{
		"no memory":  {func(p *Platform) { p.Memories = nil }, "no memory"},
		"no device":  {func(p *Platform) { p.Devices = nil }, "no device"},
		"empty name": {func(p *Platform) { p.Links[1].Name = "" }, "link 2: a name is missing"},
		"no units":   {func(p *Platform) { p.Devices[0].Count = 0 }, `device "gpu": count = 0`},
		"too many units": {func(p *Platform) { // 4·65,536 alone are as many as may be
			for i := range 4 {
				p.Devices = append(p.Devices, Device{Name: "x" + string(rune('0'+i)), Count: 1 << 16})
			}
		}, `device "x3": count = 65536: with it the devices have more than 262144 units in all`},
		"device memory":   {func(p *Platform) { p.Devices[0].Memory = 9 }, "memory is not of this platform"},
		"negative memory": {func(p *Platform) { p.Devices[0].Memory = -1 }, "memory is not of this platform"},
		"capacity":        {func(p *Platform) { p.Memories[1].CapacityBytes = -1 }, `memory "a": capacity`},
		"bandwidth":       {func(p *Platform) { p.Memories[1].BandwidthBytesPerSec = math.NaN() }, `memory "a": bandwidth`},
		"two hosts": {func(p *Platform) { p.Memories[1].Host, p.Memories[3].Host = true, true },
			`memory "c": host = true: memory "a" is the host's already`},
		"speed":            {func(p *Platform) { p.Devices[0].FlopsPerSec = map[string]float64{"float32": 0} }, `device "gpu": speed`},
		"dispatch":         {func(p *Platform) { p.Devices[0].Dispatch = -time.Second }, "dispatch"},
		"streams":          {func(p *Platform) { p.Devices[0].Streams = -1 }, "streams"},
		"idle power":       {func(p *Platform) { p.Devices[0].IdleWatts = math.Inf(1) }, "a power of +Inf W"},
		"source":           {func(p *Platform) { p.Devices[0].IdleWatts = 3 }, `source = ""`},
		"both busy powers": {func(p *Platform) { p.Devices[0].Busy = BusyPower{UnitWatts: 1, WholeDevice: true} }, "give one"},
		"host source":      {func(p *Platform) { p.HostPower.Source = "web" }, `source = "web"`},
		"first clock":      {func(p *Platform) { p.Devices[0].Clocks = []Clock{{Name: "x", Scale: 2}} }, "first clock"},
		"link bandwidth":   {func(p *Platform) { p.Links[0].BandwidthBytesPerSec = 0 }, `link "l0": bandwidth`},
		"link latency":     {func(p *Platform) { p.Links[0].Latency = -1 }, `link "l0": latency`},
		"sharing":          {func(p *Platform) { p.Links[0].Sharing = 9 }, "sharing 9"},
		"route end":        {func(p *Platform) { p.Routes[0].To = 99 }, "route 1"},
		"route link":       {func(p *Platform) { p.Routes[0].Links[0] = -1 }, "link -1"},
		"route twice":      {func(p *Platform) { p.Routes[2] = Route{From: 1, To: 0, Links: []LinkID{0}} }, `from "a" to "ram" already`},
		"no route there":   {func(p *Platform) { p.Routes = p.Routes[1:] }, `device "gpu": no route leads from "b", the host's memory, to "a"; add a [[route]]`},
		"no route back":    {func(p *Platform) { p.Devices[0].Memory = 3 }, `device "gpu": no route leads from "c" back to "b", the host's memory; add`},
		"no route for the second": {func(p *Platform) {
			p.Devices[0].Memory, p.Devices[0].Unreachable = 4, true
			p.Devices = append(p.Devices, Device{Name: "gpu2", Kind: "emulated", Count: 1, Memory: 4})
		}, `device "gpu2": no route leads from "b", the host's memory, to "d"`},
		"model without op": {func(p *Platform) { p.Models[0].Op = "" }, "op is missing"},
		"model median":     {func(p *Platform) { p.Models[0].MedianNs = 0 }, "median"},
		"model median NaN": {func(p *Platform) { p.Models[0].MedianNs = math.NaN() }, "median"},
		"model flops":      {func(p *Platform) { p.Models[0].Flops = -1 }, "flops"},
		"model twice":      {func(p *Platform) { p.Models = append(p.Models, p.Models[0]) }, "a second model"},
		"same ordinal": {func(p *Platform) {
			for i := range 2 {
				p.Devices[i].Kind, p.Devices[i].Ordinal = "cuda", 3
			}
		}, "ordinal = 3 is that of device"},
		"name of a kind": {func(p *Platform) { p.Devices[0].Name = "cpu"; p.Devices[1].Name = "x" }, "name of the kind"},
	} {
		p := star()
		p.Models = []Model{{Op: "o", Type: "float32", Device: "gpu", Shape: "1", MedianNs: 1}}
		must.Do(t, p.Complete())
		c.change(p)
		for how, err := range map[string]error{"Check": p.Check(), "Complete": p.Complete()} {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %s says %v; want %q", name, how, err, c.want)
			}
		}
	}
	p := star()
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "workers") {
		t.Errorf("a platform without its workers: %v", err)
	}
}
