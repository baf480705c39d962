package main

// peak writes loops of fused multiply-adds that depend on nothing but themselves:
// twelve in flight are more than any processor's latency times its units.
func peak(m machine) {
	const inFlight = 12
	l := m.begin("peak"+m.name(), "peakArgs", "multiplies and adds 24 vectors, rounds times.", "rounds")
	l.MOVQ(l.field("rounds"), batch)
	for i := range inFlight + 1 {
		m.zero(m.v(i))
	}
	m.Label("round")
	for i := range 2 * inFlight {
		m.fma(m.v(inFlight), m.v(inFlight), m.v(i%inFlight))
	}
	l.again(batch, "round")
	l.end()
}
