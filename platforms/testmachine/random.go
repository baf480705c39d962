package testmachine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/must"
	"dahl/platform"
)

// Random is a machine of up to four classes of equal devices. Classes differ in speed, memory, links, powers, clocks and sleep states.
// The first are processors at the host's memory.
func Random(t testing.TB, r *rand.Rand) *platform.Platform {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"random\"\nhost_power = \"%.3g W\"\n", spread(r, 1, 60))
	fmt.Fprintf(&b, "[[memory]]\nname = \"ram\"\ncapacity = \"64 GB\"\nbandwidth = \"%.3g GB/s\"\n", spread(r, 20, 300))
	for class := range 1 + r.IntN(4) {
		addClass(&b, r, class)
	}
	return must.Get(platform.Parse([]byte(b.String()), "random.toml"))(t)
}

// spread draws a number whose logarithm is uniform.
func spread(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

// addClass adds up to three equal devices with their memories and links. Either each has a link, or all share one.
func addClass(b *strings.Builder, r *rand.Rand, class int) {
	processors := class == 0 || r.IntN(3) == 0
	own, shared := !processors || class > 0 && r.IntN(2) == 0, r.IntN(2) == 0
	device := deviceText(r, processors)
	memory := fmt.Sprintf("capacity = \"%.3g GB\"\nbandwidth = \"%.3g GB/s\"\n", spread(r, 1, 64), spread(r, 50, 2000))
	link := fmt.Sprintf("bandwidth = \"%.3g GB/s\"\nlatency = \"%.3g us\"\nsharing = %q\npower = { idle = \"%.3g W\", busy = \"%.3g W\" }\n", spread(r, 1, 60), spread(r, 0.3, 10),
		[]string{"shared", "duplex", "fatpipe"}[r.IntN(3)], spread(r, 0.1, 1), spread(r, 1, 10))
	if own && shared {
		fmt.Fprintf(b, "[[link]]\nname = \"link%d\"\n%s", class, link)
	}
	for i := range 1 + r.IntN(3) {
		name, at := fmt.Sprintf("d%d%c", class, 'a'+i), "ram"
		if own {
			at = name + ".mem"
			by := fmt.Sprint("link", class)
			fmt.Fprintf(b, "[[memory]]\nname = %q\n%s", at, memory)
			if !shared {
				by = name + ".link"
				fmt.Fprintf(b, "[[link]]\nname = %q\n%s", by, link)
			}
			fmt.Fprintf(b, "[[route]]\nfrom = \"ram\"\nto = %q\nlinks = [%q]\n", at, by)
		}
		fmt.Fprintf(b, "[[device]]\nname = %q\nmemory = %q\n%s", name, at, device)
	}
}

// deviceText is a device without its name and memory.
func deviceText(r *rand.Rand, processor bool) string {
	var b strings.Builder
	kind, count, speed, dispatch := platform.CUDA, 1, spread(r, 100, 20_000), spread(r, 1, 8)
	idle := spread(r, 5, 60)
	if processor {
		kind, count, speed, dispatch, idle = platform.CPU, 1+r.IntN(8), spread(r, 5, 150), spread(r, 0.1, 1), spread(r, 0.1, 2)
	}
	busy := idle + spread(r, 2, 10)*idle
	fmt.Fprintf(&b, "kind = %q\ncount = %d\nspeed = { float32 = \"%.3g GF/s\" }\ndispatch = \"%.3g us\"\n", kind, count, speed, dispatch)
	if processor && r.IntN(2) == 0 {
		fmt.Fprintf(&b, "handoff = \"%.3g us\"\n", spread(r, 0.1, 1))
	}
	if !processor {
		fmt.Fprintf(&b, "copy_engines = { in = %d, out = %d }\n", 1+r.IntN(2), 1+r.IntN(2))
	}
	power := fmt.Sprintf("\"%.3g W\"", busy)
	if count > 1 && r.IntN(2) == 0 { // what units share makes the first of them the dearest
		power = fmt.Sprintf("[\"%.4g W\", \"%.4g W\"]", float64(count)*idle+2*busy, float64(count)*idle+(2+0.7*float64(count-1))*busy)
	}
	off := ""
	if r.IntN(3) == 0 {
		off = fmt.Sprintf(", off = \"%.3g W\"", 0.1*idle)
	}
	fmt.Fprintf(&b, "power = { idle = \"%.3g W\", busy = %s%s }\n", idle, power, off)
	if clocks := r.IntN(3); clocks > 0 {
		fmt.Fprintf(&b, "clock_domain = %q\nclock_switch = { time = \"%.3g us\", joules = \"%.3g uJ\" }\n", []string{"device", "unit"}[r.IntN(2)], spread(r, 0.1, 20), spread(r, 0.1, 20))
		scale := 1.0
		for i := range clocks {
			scale *= 0.5 + 0.4*r.Float64()
			law := math.Pow(scale, 1+2*r.Float64()) // of the power above idle
			units := fmt.Sprintf("\"%.3g W\"", idle+(busy-idle)*law)
			fmt.Fprintf(&b, "[[device.clock]]\nname = \"slow%d\"\nscale = %.3g\npower = { idle = \"%.3g W\", busy = %s }\n", i, scale, idle, units)
		}
	}
	if r.IntN(3) == 0 {
		after := ""
		if r.IntN(2) == 0 {
			after = fmt.Sprintf("after = \"%.3g us\"\n", spread(r, 5, 500))
		}
		fmt.Fprintf(&b, "[[device.sleep]]\nname = \"deep\"\npower = \"%.3g W\"\n%senter = { time = \"%.3g us\", joules = \"%.3g uJ\" }\nleave = { time = \"%.3g us\", joules = \"%.3g uJ\" }\n", 0.2*idle, after,
			spread(r, 1, 20), spread(r, 0.1, 20), spread(r, 1, 50), spread(r, 0.1, 20))
	}
	return b.String()
}
