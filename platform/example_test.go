package platform_test

import (
	"fmt"

	"dahl/platform"
	"dahl/platforms"
)

// A core of this machine computes 20 GF/s, so that 40 million operations take 2 ms. Its bus
// moves 4 GB/s after 10 us.
func ExamplePlatform_Estimate() {
	p, err := platforms.Load("emulated")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range p.Workers {
		fmt.Println(w.Name)
	}
	core, _ := p.DeviceByName("cpu")
	e, _ := p.Estimate(platform.Query{Op: "dense", Type: "float32", Device: core, Flops: 40e6})
	fmt.Println(e.Duration, "by", e.Source)
	ram, _ := p.MemoryByName("ram")
	vram, _ := p.MemoryByName("vram")
	fmt.Println(p.RouteTime(ram, vram, 8e6), "for 8 MB")
	// Output:
	// cpu.0
	// cpu.1
	// gpu
	// 2ms by roofline
	// 2.01ms for 8 MB
}
