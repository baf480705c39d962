package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

func peakAVX2(c *build.Context)   { peak(c, false) }
func peakAVX512(c *build.Context) { peak(c, true) }

// peak writes loops of fused multiply-adds that depend on nothing but themselves:
// twelve in flight are more than any processor's latency times its units.
func peak(c *build.Context, wide bool) {
	const inFlight = 12
	for _, m := range machines(c, wide) {
		m.function("peak"+m.name(), "peakArgs", "multiplies and adds 24 vectors, rounds times.", args)
		field := fields(args, "rounds")
		m.MOVQ(field("rounds"), batch)
		for i := range inFlight + 1 {
			m.zero(m.v(i))
		}
		m.Label("round")
		for i := range 2 * inFlight {
			m.fma(m.v(inFlight), m.v(inFlight), m.v(i%inFlight))
		}
		m.DECQ(batch)
		m.JNE(operand.LabelRef("round"))
		m.VZEROUPPER()
		m.RET()
	}
}
