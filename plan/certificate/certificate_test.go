package certificate

import (
	"strings"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// A bound for all lowerings is refused where the space does not know their work. Without leaves it stands alone.
func TestOnlyLayers(t *testing.T) {
	c := &Certificate{Objective: problem.Time, Devices: []string{""}, Tiles: []tiling.Tiling{{}}, Layers: &shares.Bound{Of: shares.Covered}}
	if err := c.Check(space.Of(nil, []string{""})); err == nil || !strings.Contains(err.Error(), "all lowerings") {
		t.Errorf("without work: %v", err)
	}
	var file strings.Builder
	must.Do(t, c.Write(&file))
	if got := must.Get(Read(strings.NewReader(file.String())))(t); got.Layers == nil || got.Layers.Of != shares.Covered || got.Format != Format {
		t.Errorf("read as %+v", got)
	}
	if _, err := Read(strings.NewReader(strings.Replace(file.String(), Format, "dahl-certificate 5", 1))); err == nil || !strings.Contains(err.Error(), "dahl rerun") {
		t.Errorf("of an older form: %v", err)
	}
}
