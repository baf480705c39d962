package words

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/energy/meter"
	"dahl/plan"
)

// Metered prints them: "gpu0 3.3 J per step (predicted 3.4 J, +3.0 %)".
func Metered(steps []plan.MeteredStep) string {
	return strings.Join(cli.Texts(steps, func(s plan.MeteredStep) string {
		return fmt.Sprintf("%s %s per step (predicted %s, %+.1f %%)", s.Of, cli.ShortJoules(s.JoulesPerStep), cli.ShortJoules(s.PredictedJoulesPerStep), s.ErrorPercent)
	}), ", ")
}

// PrintMeters prints the state of each meter that did more or less than count, and its consequence.
func PrintMeters(out io.Writer, states []meter.MeterState, readings []meter.Reading) {
	for i := range states {
		m := &states[i]
		if m.Status == meter.Counts {
			continue
		}
		measured := slices.ContainsFunc(readings, func(r meter.Reading) bool { return r.Of == m.Of })
		switch text := m.String(); {
		case m.Whole() || m.Unused || measured:
			fmt.Fprintf(out, "meter     %s\n", text)
		default:
			fmt.Fprintf(out, "meter     %s; so the joules of %s are not measured\n", text, m.Of)
		}
	}
}

// RankText says what a node has measured: "on host7, 1.2 s in runs, 104 MB at most, 63 ± 1 J of processors by RAPL".
func RankText(n *plan.RankMeasured) string {
	text := fmt.Sprintf("on %s, %s in runs, %s at most", n.Machine, cli.ShowTime(n.Seconds), cli.ShortBytes(n.PeakBytes))
	switch {
	case len(n.Readings) > 0:
		return text + ", " + Readings(n.Readings)
	case n.SharesMeters:
		return text + ", meters as of the first node of its machine"
	}
	return text + ", no joules measured"
}

// PrintRanks prints what the process of each node has measured.
func PrintRanks(out io.Writer, nodes []plan.RankMeasured) {
	for i := range nodes {
		fmt.Fprintf(out, "rank      %s %s\n", nodes[i].Node, RankText(&nodes[i]))
	}
}

// Readings prints what each meter counted: "12.1 J of processors by RAPL, 40 J of
// gpu0 by … (38 J by …: 5 % apart)".
func Readings(readings []meter.Reading) string {
	return strings.Join(cli.Texts(readings, func(r meter.Reading) string {
		text := fmt.Sprintf("%s ± %s J of %s by %s", cli.ThreeDigits(r.Joules), cli.ThreeDigits(r.ErrorJoules), r.Of, r.Meter)
		if s := r.Second; s != nil {
			text += fmt.Sprintf(" (%s J by %s: %+.1f %%)", cli.ThreeDigits(s.Joules), s.Meter, s.DisagreementPercent)
		}
		return text
	}), ", ")
}
