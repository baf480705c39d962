package words

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
)

// PrintStages prints the first layers and the devices of the stages of a lowering, and the number of micro-batches of a graph. It
// prints nothing without stages; a nil lowering has none.
func PrintStages(out io.Writer, l *dag.Lowering, g *dag.Graph) {
	if l == nil || l.Stages == nil {
		return
	}
	var each []string
	for _, s := range l.Stages {
		each = append(each, fmt.Sprintf("from %s on %s", s.From, placesText(&s)))
	}
	batches := "without micro-batches"
	if n := nn.MicroBatchesOf(g); n > 0 {
		batches = fmt.Sprintf("%d micro-batches", n)
		if l.Stash {
			var versions []string
			for _, each := range nn.WeightVersions(l, n) {
				versions = append(versions, fmt.Sprint(each))
			}
			batches = fmt.Sprintf("%d mini-batches, with %s versions of the weights", n, strings.Join(versions, ", "))
		}
	}
	fmt.Fprintf(out, "stages    %s; %s\n", strings.Join(each, ", "), batches)
}

// placesText names the devices of a stage, and what several share.
func placesText(s *dag.Stage) string {
	if !s.Shared() {
		return s.Places()[0]
	}
	if s.Shares != nil {
		each := naming.List(s.Devices, func(d string) string { return fmt.Sprintf("%d of %s", s.Shares[slices.Index(s.Devices, d)], d) })
		return fmt.Sprintf("%s (samples shared in these proportions, sums %s)", strings.Join(each, " + "), s.Sum)
	}
	if s.Replicas < 2 {
		return fmt.Sprintf("%s (%s shared, sums %s)", strings.Join(naming.Ranges(s.Devices), " + "), s.Along, s.Sum)
	}
	_, each := s.Grid()
	var rows []string
	for row := range slices.Chunk(s.Devices, each) {
		rows = append(rows, strings.Join(naming.Ranges(row), " + "))
	}
	return fmt.Sprintf("%s (samples shared by rows, %s in each, sums %s)", strings.Join(rows, " | "), s.Along, s.Sum)
}
