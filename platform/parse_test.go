package platform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/must"
)

const everyKey = `name = "node"
host_power = { watts = "35 W", source = "measured" }

[[memory]]
name = "ram"
capacity = "24 GB"
bandwidth = "40 GB/s"
host = true

[[memory]]
name = "hbm0"

[[device]]
name = "cpu"
kind = "cpu"
count = 3
memory = "ram"
speed = { float32 = "60 GF/s", float64 = "30 GF/s" }
cache = { l2 = "1 MB", l3 = "32 MiB" }
dispatch = "0.3 us"
power = { idle = "2 W", busy = ["93.3 W", "200 W"], source = "datasheet" }
clock_name = "base"
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "4 W" }

[[device]]
name = "gpu0"
kind = "cuda"
memory = "hbm0"
copy_engines = { in = 1, out = 2 }
streams = 4
placed_only = true
unreachable = true
power = { idle = "20 W", busy = "250 W", source = "measured", meter = "NVML (counter)", spread = 0.02 }
whole = 5
[[link]]
name = "pcie0"
bandwidth = "12 GB/s"
latency = "8 us"
sharing = "duplex"
power = { idle = "1 W", busy = "3 W" }

[[link]]
name = "bus"
bandwidth = "40 GB/s"

[[route]]
from = "ram"
to = "hbm0"
links = ["bus", "pcie0"]
oneway = true

[[model]]
op = "dense"
variant = "go"
type = "float32"
device = "cpu"
shape = "n8 i3 o5"
active = 3
median = "12.3 us"
p95 = "13 us"
count = 40
joules = "2 mJ"
flops = "240 F"
bytes = "316 B"
workspace = "64 B"
`

func TestParseReadsEveryKey(t *testing.T) {
	base := BusyPower{FirstWatts: 93.3, AllWatts: 200, WholeDevice: true}
	want := &Platform{
		Name: "node", HostPower: Quantity{35, Measured},
		Memories: []Memory{{Name: "ram", CapacityBytes: 24e9, BandwidthBytesPerSec: 40e9, Host: true}, {Name: "hbm0"}},
		Devices: []Device{
			{Name: "cpu", Kind: "cpu", Count: 3, FlopsPerSec: map[string]float64{"float32": 60e9, "float64": 30e9},
				L2Bytes: 1e6, L3Bytes: 32 << 20, Dispatch: 300, IdleWatts: 2, Busy: base, PowerSource: Datasheet,
				Clocks: []Clock{{Name: "base", Scale: 1, Idle: 2, Busy: base}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: BusyPower{UnitWatts: 4}}}},
			{Name: "gpu0", Kind: "cuda", Count: 1, Whole: 5, Memory: 1, CopyEnginesIn: 1, CopyEnginesOut: 2, Streams: 4, PlacedOnly: true, Unreachable: true,
				IdleWatts: 20, Busy: BusyPower{UnitWatts: 250}, PowerSource: Measured, PowerMeter: "NVML (counter)", PowerSpread: 0.02},
		},
		Workers: []Worker{{"cpu.0", 0, 0}, {"cpu.1", 0, 1}, {"cpu.2", 0, 2}, {"gpu0", 1, 0}},
		Links: []Link{{Name: "pcie0", BandwidthBytesPerSec: 12e9, Latency: 8000, Sharing: Duplex, IdleWatts: 1, BusyWatts: 3, PowerSource: Guess},
			{Name: "bus", BandwidthBytesPerSec: 40e9}},
		Routes: []Route{{0, 1, []LinkID{1, 0}, true}},
		Models: []Model{{Op: "dense", Variant: "go", Type: "float32", Device: "cpu", Shape: "n8 i3 o5", Active: 3,
			MedianNs: 12300, P95Ns: 13000, Count: 40, Joules: 0.002, WorkspaceBytes: 64, Flops: 240, MovedBytes: 316}},
	}
	got := must.Get(Parse([]byte(everyKey), "node.toml"))(t)
	if !alike(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseShortForms(t *testing.T) {
	p := must.Get(Parse([]byte("host_power = \"35 W\"\n"+smallest), "x.toml"))(t)
	if p.HostPower != (Quantity{35, Guess}) || p.Devices[0].Count != 1 || p.Workers[0].Name != "cpu" || p.Devices[0].PowerSource != "" {
		t.Errorf("got %+v", p)
	}
}

const smallest = `[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
`

// Each line of everyKey that is changed gives one error with file, line, key,
// value and what to write. Lines are counted in everyKey.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`capacity = "24 GB"`, `capacity = 24`, `n.toml:6: memory "ram": capacity = 24: a unit is missing; write "24 GB"`},
		{`capacity = "24 GB"`, `capacity = "24"`, `n.toml:6: memory "ram": capacity = "24": a unit is missing; write "24 GB"`},
		{`capacity = "24 GB"`, `capacity = "-24 GB"`, `n.toml:6: memory "ram": capacity = "-24 GB": a size cannot be negative`},
		{`capacity = "24 GB"`, `capacity = "24 GX"`, `n.toml:6: memory "ram": capacity = "24 GX": unknown unit "GX" for a size; write one of PB, TB, GB, MB, kB, B, PiB, TiB, GiB, MiB, KiB`},
		{`capacity = "24 GB"`, `capacity = nan`, `n.toml:6: memory "ram": capacity = NaN: not a size; write for example "1.5 GB"`},
		{`capacity = "24 GB"`, `capacity = inf`, `n.toml:6: memory "ram": capacity = +Inf: not a size; write for example "1.5 GB"`},
		{`capacity = "24 GB"`, `capacity = "1e300 GB"`, `n.toml:6: memory "ram": capacity = "1e300 GB": larger than 8 PiB, the most that is accepted`},
		{`capacity = "24 GB"`, `capacity = "0.5 B"`, `n.toml:6: memory "ram": capacity = "0.5 B": not a whole number of bytes`},
		{`capacity = "24 GB"`, `capacity = true`, `n.toml:6: memory "ram": capacity = true: not a size; write for example "1.5 GB"`},
		{`capacity = "24 GB"`, `capactiy = "24 GB"`, `n.toml:6: memory "ram": capactiy: unknown key; known are name, node, capacity, bandwidth, host; did you mean capacity`},
		{`capacity = "24 GB"`, `capacity = "24 GB`, `n.toml:6: not TOML: strings cannot contain newlines`},
		{`host = true`, `host = "yes"`, `n.toml:8: memory "ram": host = "yes": write true or false`},
		{`name = "hbm0"`, "name = \"hbm0\"\nhost = true", `n.toml:12: memory "hbm0": host = true: memory "ram" is the host's already; write it at one of them`},
		{`name = "gpu0"`, `name = "cpu"`, `n.toml:29: device "cpu": this name is taken; give each its own`},
		{`count = 3`, `count = -3`, `n.toml:16: device "cpu": count = -3: want a whole number from 1 to 65536`},
		{`count = 3`, `count = 1.5`, `n.toml:16: device "cpu": count = 1.5: want a whole number from 1 to 65536`},
		{`count = 3`, `count = 1000000000`, `n.toml:16: device "cpu": count = 1000000000: want a whole number from 1 to 65536`},
		{`kind = "cpu"`, `kind = "fpga"`, `n.toml:15: device "cpu": kind = "fpga": write "cpu", "cuda" or "emulated"`},
		{`memory = "ram"`, `memory = "rum"`, `n.toml:17: device "cpu": memory = "rum": no memory has this name; memories are ram, hbm0; did you mean ram`},
		{`memory = "ram"`, ``, `n.toml:13: device "cpu": memory is missing; write memory = the name of a memory, such as "ram"`},
		{`float64 = "30 GF/s"`, `float64 = "30 GB/s"`, `n.toml:18: device "cpu": speed: float64 = "30 GB/s": unknown unit "GB/s" for a speed; write one of PF/s, TF/s, GF/s, MF/s, kF/s, F/s`},
		{`float64 = "30 GF/s"`, `float16 = "30 GF/s"`, `n.toml:18: device "cpu": speed: float16: unknown key; known are bfloat16, float32, float64, int32, int64, uint8; did you mean bfloat16`},
		{`source = "datasheet"`, `source = "web"`, `n.toml:21: device "cpu": power: source = "web": write "measured", "datasheet" or "guess"`},
		{`["93.3 W", "200 W"]`, `["93.3 W"]`, `n.toml:21: device "cpu": power: busy = [93.3 W]: want two powers of the whole device, ["one unit busy", "all busy"]`},
		{`source = "measured", meter`, `meter`, `n.toml:36: device "gpu0": a meter or a spread of a power that is not measured; write source = "measured", or leave meter and spread out`},
		{`spread = 0.02`, `spread = -0.02`, `n.toml:36: device "gpu0": spread = -0.02: want a number that is not negative, relative to the power`},
		{`scale = 0.5`, `scale = -1`, `n.toml:25: device "cpu": clock "slow": scale = -1: want a positive number, 1 for the speed of the device`},
		{`scale = 0.5`, "scale = 0.5\nfrequency = \"0 GHz\"", `n.toml:26: device "cpu": clock "slow": frequency = "0 GHz": want more than zero; leave the key out where it is not known or not limited`},
		{`scale = 0.5`, "scale = 0.5\nfrequency = \"3 W\"", `n.toml:26: device "cpu": clock "slow": frequency = "3 W": unknown unit "W" for a frequency; write one of GHz, MHz, kHz, Hz`},
		{`clock_name = "base"`, `clock_frequency = 3`, `n.toml:22: device "cpu": clock_frequency = 3: a unit is missing; write "3 GHz"`},
		{`name = "slow"`, `name = "base"`, `n.toml:24: device "cpu": clock name "base": give each clock a name of its own, of letters and digits`},
		{`count = 3`, "count = 3\nclock_in_force = \"warp\"", `n.toml:17: device "cpu": clock_in_force = "warp": no clock of the device has this name; clocks are base, slow`},
		{`name = "gpu0"`, "name = \"gpu0\"\nclock_in_force = \"slow\"", `n.toml:30: device "gpu0": clock_in_force = "slow": no clock of the device has this name; clocks are none`},
		{`median = "12.3 us"`, "median = \"12.3 us\"\ncompute = 0", `n.toml:63: model 1: compute = 0: want more than zero; leave the key out where it is not known or not limited`},
		{`median = "12.3 us"`, "median = \"12.3 us\"\ncompute = 1.5", `n.toml:63: model of "dense": compute is 1.5; want 0 to 1`},
		{`name = "gpu0"`, `name = "cpu.1"`, `n.toml:14: device "cpu": its unit "cpu.1" has the name of another device or unit`},
		{`name = "gpu0"`, `name = "a/b"`, `n.toml:29: device "a/b": a name has letters, digits, '_', '-' and '.' only, at most 64`},
		{`unreachable = true`, ``, `n.toml:31: device "gpu0": no route leads from "hbm0" back to "ram", the host's memory; add a [[route]], or write unreachable = true where that is meant`},
		{`placed_only = true`, `ordinal = -1`, `n.toml:34: device "gpu0": ordinal = -1: want a whole number from 0 to 65536`},
		{`memory = "ram"`, "memory = \"ram\"\nordinal = 2", `n.toml:18: device "cpu": ordinal = 2: only devices of kind cuda have one, from 0`},
		{`placed_only = true`, `fault = { after = 3, kind = "lost" }`, `n.toml:34: device "gpu0": fault = { after = 3, kind = "lost" }: only devices of kind emulated can be told to fail`},
		{`kind = "cuda"`, "kind = \"emulated\"\nfault = { after = 3, kind = \"bored\" }", `n.toml:31: device "gpu0": fault = { after = 3, kind = "bored" }: write kind = "lost" or "memory"`},
		{`kind = "cuda"`, "kind = \"emulated\"\nfault = { after = -1, kind = \"lost\" }", `n.toml:31: device "gpu0": fault: after = -1: want a whole number from 0 to 2147483647`},
		{`kind = "cuda"`, "kind = \"emulated\"\nfault = { kind = \"lost\" }", `n.toml:31: device "gpu0": fault: after is missing; write after = 100`},
		{`name = "gpu0"`, ``, `n.toml:28: device 2: name is missing; write name = "cpu"`},
		{`bandwidth = "12 GB/s"`, `bandwidth = "0 GB/s"`, `n.toml:40: link "pcie0": bandwidth = "0 GB/s": want more than zero; leave the key out where it is not known or not limited`},
		{`sharing = "duplex"`, `sharing = "half"`, `n.toml:42: link "pcie0": sharing = "half": write "shared" (one capacity for both directions), "duplex" or "fatpipe" (no sharing)`},
		{`"bus", "pcie0"`, `"bus", "pcie1"`, `n.toml:52: route 1: links = "pcie1": no link has this name; links are pcie0, bus; did you mean pcie0`},
		{`"bus", "pcie0"`, ``, `n.toml:52: route 1: 0 links; name the links from "ram" to "hbm0" in order`},
		{`to = "hbm0"`, `to = "ram"`, `n.toml:51: route 1: it leads from a memory to itself; remove it`},
		{`median = "12.3 us"`, `median = "12.3 mm"`, `n.toml:62: model 1: median = "12.3 mm": unknown unit "mm" for a time; write one of s, ms, us, ns`},
		{`device = "cpu"`, `device = "tpu"`, `n.toml:59: model of "dense": device = "tpu": no device has this name or kind`},
		{`name = "node"`, `node = 1`, `n.toml:1: node = 1: want tables; write [[node]] above each`},
		{`name = "node"`, `models = ["m.toml"]`, `n.toml:1: models = "m.toml": a model file can only be named in a platform that is loaded from a file`},
		{`name = "node"`, `memory = 3`, `n.toml:4: not TOML: `},
	} {
		src := strings.Replace(everyKey, c.old, c.new, 1)
		if src == everyKey {
			t.Fatalf("%q is not in the example", c.old)
		}
		_, err := Parse([]byte(src), "n.toml")
		if err == nil {
			t.Errorf("%s: accepted", c.new)
		} else if got := err.Error(); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s:\n got %s\nwant %s", c.new, got, c.want)
		}
	}
}

func TestParseErrorsOfWholeFiles(t *testing.T) {
	for src, want := range map[string]string{
		"":                                  `x.toml:1: no memory; add a [[memory]]`,
		"[[memory]]\nname = \"m\"":          `x.toml:1: no device; add a [[device]]`,
		"memory = \"ram\"":                  `x.toml:1: memory = "ram": want tables; write [[memory]] above each`,
		"x = " + strings.Repeat("[", 1<<20): `x.toml:1: arrays or tables nested more than 64 deep, or a name of more parts`,
		// Each line opens one array, so that the 65th is on line 65. The library would recurse into all of them.
		"x = " + strings.Repeat("[\n", 1<<10): `x.toml:65: arrays or tables nested more than 64 deep`,
		strings.Repeat("a.", 1<<10) + "a = 1": `x.toml:1: arrays or tables nested more than 64 deep`,
		"\x00":                                `x.toml:1: not TOML: `,
	} {
		if _, err := Parse([]byte(src), "x.toml"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v; want %s", src, err, want)
		}
	}
}

func TestLoadReadsModelFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	model := "[[model]]\nop = \"relu\"\ntype = \"float32\"\ndevice = \"cpu\"\nshape = \"7\"\nmedian = \"3 us\"\n"
	write("p.toml", "models = [\"m.toml\"]\n"+smallest)
	write("m.toml", model)
	p := must.Get(Load(filepath.Join(dir, "p.toml")))(t)
	if len(p.Models) != 1 || p.Models[0].MedianNs != 3000 || p.Models[0].Active != 1 {
		t.Errorf("models: %+v", p.Models)
	}
	// The second model repeats the first; it starts on line 7 of the model file.
	write("m.toml", model+model)
	want := filepath.Join(dir, "m.toml") + `:8: model of "relu": a second model of variant "", shape "7", active 1`
	if _, err := Load(filepath.Join(dir, "p.toml")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	write("m.toml", "[[memory]]\n")
	if _, err := Load(filepath.Join(dir, "p.toml")); err == nil || !strings.Contains(err.Error(), "m.toml:1: memory: unknown key; known are [[model]]") {
		t.Errorf("a memory in a model file: %v", err)
	}
	write("p.toml", "models = [\"none.toml\"]\n"+smallest)
	if _, err := Load(filepath.Join(dir, "p.toml")); err == nil || !strings.Contains(err.Error(), "p.toml:1: models: ") {
		t.Errorf("a model file that is missing: %v", err)
	}
}

func TestShippedPlatforms(t *testing.T) {
	files, err := filepath.Glob("../platforms/*.toml")
	if err != nil || len(files) < 3 {
		t.Fatalf("platforms: %v, %v", files, err)
	}
	for _, file := range files {
		p, err := LoadWith(file, func(name string) ([]byte, error) { return os.ReadFile("../platforms/" + name + ".toml") })
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != strings.TrimSuffix(filepath.Base(file), ".toml") {
			t.Errorf("%s: the name is %q", file, p.Name)
		}
		src, _ := os.ReadFile(file)
		if !strings.Contains(string(src), "Where the numbers come from") {
			t.Errorf("%s does not say where its numbers come from", file)
		}
		for d := range p.Devices {
			if p.Devices[d].PowerSource == "" || p.Devices[d].Watts(p.Devices[d].AtClock, p.Devices[d].Count) <= p.Devices[d].Watts(p.Devices[d].AtClock, 0) {
				t.Errorf("%s: device %q has no power, or draws less when busy", file, p.Devices[d].Name)
			}
			for _, elem := range []string{"float32", "float64"} {
				q := Query{Op: "relu", Type: elem, Device: DeviceID(d), Flops: 1e6, MovedBytes: 1e6}
				if e, ok := p.Estimate(q); !ok || e.Duration <= 0 {
					t.Errorf("%s: device %q has no roofline for %s", file, p.Devices[d].Name, elem)
				}
			}
		}
		for a := range p.Memories[:len(p.Memories)/max(1, len(p.Nodes))] { // of the first node
			for b := range p.Memories {
				if _, ok := p.Route(MemoryID(a), MemoryID(b)); !ok {
					t.Errorf("%s: no route from %q to %q", file, p.Memories[a].Name, p.Memories[b].Name)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(everyKey)
	f.Add(smallest)
	for _, s := range []string{"", "[", "[[memory]]", "memory = [{}]", "[[device.clock]]", "[memory]\n[device]", "host_power = {}",
		"models = [1]", "[[route]]\nlinks = [[]]", "a.b.c = 1", "\"\" = 1", "[[model]]\nmedian = 1979-05-27", "x = \"\"\"\n[[memory]]\n\"\"\""} {
		f.Add(s)
		f.Add(s + "\n" + smallest)
	}
	f.Add("x = " + strings.Repeat("[\n", 65))
	f.Add(strings.Repeat("a.", 64) + "a = 1")
	f.Add(strings.Replace(everyKey, "host = true\n", "", 1))
	f.Add(strings.Replace(everyKey, "unreachable = true\n", "", 1))
	f.Add(strings.Replace(everyKey, "oneway", "unreachable", 1))
	f.Add(strings.Replace(everyKey, `name = "hbm0"`, "name = \"hbm0\"\nhost = true", 1))
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Parse([]byte(src), "fuzz.toml")
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "fuzz.toml:") {
				t.Errorf("not one line with the file: %q", text)
			}
			return
		}
		checkRoundTrip(t, p)
	})
}

// The reference in platforms/README.md is read as it stands.
func TestDocumentedKeys(t *testing.T) {
	text := must.Get(os.ReadFile("../platforms/README.md"))(t)
	_, rest, _ := strings.Cut(string(text), "```toml\n")
	src, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example in platforms/README.md")
	}
	p := must.Get(Parse([]byte(src), "README.md"))(t)
	if kinds := strings.NewReplacer(", ", " | ", " or ", " | ").Replace(kindNames("", func(Kind) bool { return true })); !strings.Contains(src, "# "+kinds+"\n") {
		t.Errorf("platforms/README.md does not list the kinds %s", kinds)
	}
	if len(p.Workers) != 9 || len(p.Models) != 1 || p.Devices[0].Clocks[0].Name != "base" || len(p.Devices[0].Sleeps) != 1 || len(p.Links[0].Sleeps) != 1 {
		t.Errorf("got %+v", p)
	}
}
