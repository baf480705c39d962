package exchange

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/platform"
)

// simgridText has the first host of SimGrid's example of energy, in both of its forms.
const simgridText = `<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config><prop id="network/model" value="CM02"/></config>
  <zone id="AS0" routing="Full">
    <host id="My Host1" speed="100.0Mf,50.0Mf,20.0Mf" pstate="2" core="4">
      <prop id="wattage_per_state" value="100.0:93.33333333333333:200.0, 93.0:90.0:170.0, 90.0:90.0:150.0"/>
      <prop id="wattage_off" value="10"/>
    </host>
    <host id="old" speed="2Gf" core="4"><prop id="watt_per_state" value="100:120:200"/></host>
    <host id="small" speed="1e9" availability_file="t.trace"><prop id="wattage_per_state" value="5:9"/><prop id="memsize" value="3000"/></host>
    <link id="bus" bandwidth="1MBps" latency="10us"/>
    <link id="wire" bandwidth="8Mbps" latency="0.000002" sharing_policy="SPLITDUPLEX"><prop id="wattage_range" value="2:6"/></link>
    <link id="loop" bandwidth="1KiBps" latency="1s" sharing_policy="FATPIPE"/>
    <route src="old" dst="old"><link_ctn id="loop"/></route>
    <route src="My Host1" dst="old"><link_ctn id="bus"/><link_ctn id="wire" direction="UP"/></route>
    <route src="small" dst="old" symmetrical="NO"><link_ctn id="wire" direction="DOWN"/></route>
    <route src="old" dst="small" symmetrical="NO"><link_ctn id="bus"/></route>
  </zone>
</platform>
`

// simgridCluster has three hosts with a wire each at a backbone.
const simgridCluster = `<platform version="4.1"><cluster id="c" prefix="n-" radical="0-1,5" suffix=".org" speed="1Gf" bw="125MBps" lat="50us" bb_bw="2.25GBps" bb_lat="500us"/></platform>`

// simgridStarpu is in the form in which StarPU writes machines.
const simgridStarpu = `<platform version="3"><AS id="AS0" routing="Full">
<host id="MAIN" power="1"/><host id="CPU0" power="2000000000"/><host id="CPU1" power="2000000000"/>
<host id="CUDA0" power="2000000000"><prop id="memsize" value="5636554752"/><prop id="memcpy_peer" value="1"/></host>
<host id="OpenCL0" power="2000000000"/><host id="RAM" power="1"/>
<link id="Host" bandwidth="6000" latency="0.000000"/><link id="RAM-CUDA0" bandwidth="5000.5" latency="0.000010"/><link id="PCI:0000:[00-0f] up" bandwidth="1"/>
<route src="RAM" dst="CUDA0" symmetrical="NO"><link_ctn id="RAM-CUDA0"/><link_ctn id="Host"/></route>
<route src="CUDA0" dst="RAM" symmetrical="NO"><link_ctn id="Host"/></route>
<route src="RAM" dst="OpenCL0"><link_ctn id="Host"/></route>
</AS></platform>`

func readMachine(t *testing.T, name, text string) (*platform.Platform, string) {
	t.Helper()
	in := must.Get(must.Get(FormatOf(name, []byte(text)))(t).Read([]byte(text), name, Options{}))(t)
	checkPlatform(t, in.Platform)
	return in.Platform, leftOf(in)
}

// TestSimGridWatts: SimGrid computes 100 W for the idle host, 120 W for one core at the first state, and 105 W for one at the last state.
func TestSimGridWatts(t *testing.T) {
	p, left := readMachine(t, "e.xml", simgridText)
	if left != "1 config elements, 1 courses over time, 1 loopbacks" {
		t.Errorf("left out %s", left)
	}
	host := p.Devices[0]
	var got []float64
	for _, at := range []struct {
		clock platform.ClockID
		busy  int
	}{{0, 0}, {0, 1}, {0, 4}, {1, 0}, {1, 4}, {2, 1}} {
		got = append(got, host.Watts(at.clock, at.busy))
	}
	if text := fmt.Sprintf("%.9g", got); text != "[100 120 200 93 170 105]" || host.AtClock != 2 || host.OffWatts != 10 || host.Clocks[2].Scale != 0.2 || host.Name != "My_Host1" {
		t.Errorf("watts %s of %+v", text, host)
	}
	if old := p.Devices[1]; old.Watts(0, 1) != 120 || old.Watts(0, 4) != 200 || old.FlopsPerSec["float32"] != 2e9 {
		t.Errorf("the old form gives %g W for one core", old.Watts(0, 1))
	}
	if small := p.Devices[2]; small.IdleWatts != 5 || small.Watts(0, 1) != 9 || p.Memories[2].CapacityBytes != 3000 {
		t.Errorf("a single core draws %g W", small.Watts(0, 1))
	}
}

// TestSimGridRoutes: a route takes its links both ways, unless it says otherwise. 8 Mbit/s are 1 MB/s.
func TestSimGridRoutes(t *testing.T) {
	p, _ := readMachine(t, "e.xml", simgridText)
	// 1,000 bytes take 1 ms at 1 MB/s. Latencies are 10 us of the bus and 2 us of the wire.
	for _, c := range []struct {
		from, to platform.MemoryID
		want     time.Duration
	}{{0, 1, 1012 * time.Microsecond}, {1, 0, 1012 * time.Microsecond}, {2, 1, 1002 * time.Microsecond}, {1, 2, 1010 * time.Microsecond}} {
		if got := p.RouteTime(c.from, c.to, 1000); got != c.want {
			t.Errorf("1000 bytes from %d to %d take %v, want %v", c.from, c.to, got, c.want)
		}
	}
	var names []string
	for _, from := range []platform.MemoryID{0, 1} {
		links, _ := p.Route(from, 1-from)
		for _, l := range links {
			names = append(names, p.Links[l].Name)
		}
	}
	if got := strings.Join(names, " "); got != "bus wire.up wire.down bus" || p.Links[1].IdleWatts != 1 || p.Links[1].BusyWatts != 3 {
		t.Errorf("there and back by %s", got)
	}
}

// TestSimGridCluster: data go up the wire of one host, along the backbone and down the wire of the other.
func TestSimGridCluster(t *testing.T) {
	p, _ := readMachine(t, "c.xml", simgridCluster)
	links, _ := p.Route(2, 0)
	var names []string
	for _, l := range links {
		names = append(names, p.Links[l].Name)
	}
	if got := strings.Join(names, " "); got != "c_link_5.up c_backbone c_link_0.down" || p.Devices[2].Name != "n-5.org" || p.RouteTime(2, 0, 0) != 600*time.Microsecond {
		t.Errorf("%d hosts, the last to the first by %s", len(p.Devices), got)
	}
}

// TestSimGridStarpu: cores share the memory RAM.
func TestSimGridStarpu(t *testing.T) {
	p, left := readMachine(t, "mirage.platform.xml", simgridStarpu)
	if left != "1 properties of hosts, 2 hosts that are neither cores nor CUDA devices, 1 routes to hosts that are left out" {
		t.Errorf("left out %s", left)
	}
	gpu := p.Devices[1]
	if p.Name != "mirage" || len(p.Devices) != 2 || p.Devices[0].Count != 2 || gpu.Kind != platform.CUDA || p.Memories[gpu.Memory].CapacityBytes != 5636554752 {
		t.Errorf("a machine %q of %+v", p.Name, p.Devices)
	}
	// 10,001 bytes take 2 s at 5000.5 B/s.
	if got := p.RouteTime(0, gpu.Memory, 10001); got != 2*time.Second+10*time.Microsecond {
		t.Errorf("to the GPU in %v", got)
	}
}

// simgridLoose has a host that no route reaches, a router, a course over time, and a state in which a host boots.
const simgridLoose = `<platform version="4.1"><trace id="t" periodicity="1">0 1</trace><zone id="z" routing="Full"><router id="r"/>
<host id="a" speed="3Gf,0f,1Gf" pstate="2"><prop id="wattage_per_state" value="1:2:3,7:7:7,4:5:6"/></host><host id="b" speed="1Gf"/><host id="alone" speed="1Gf"/>
<link id="l" bandwidth="1kBps"/><route src="a" dst="b"><link_ctn id="l"/></route><route src="a" dst="r"><link_ctn id="l"/></route></zone></platform>`

func TestSimGridLoose(t *testing.T) {
	p, left := readMachine(t, "l.xml", simgridLoose)
	if left != "1 trace elements, 1 states in which a host computes nothing, 1 routes of routers, 1 hosts without a route to and from a.mem, which no data reach" {
		t.Errorf("left out %s", left)
	}
	a := p.Devices[0]
	if len(a.Clocks) != 2 || a.AtClock != 1 || a.Clocks[1].Idle != 4 || !p.Devices[2].Unreachable || p.Devices[1].Unreachable {
		t.Errorf("devices %+v", p.Devices)
	}
}

func FuzzSimGrid(f *testing.F) {
	for _, text := range []string{simgridText, simgridCluster, simgridStarpu, simgridLoose} {
		f.Add([]byte(text))
	}
	fuzz(f, "simgrid")
}
