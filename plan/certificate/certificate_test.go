package certificate

import (
	"fmt"
	"strings"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// A certificate with one chain is read. So is one of the form before bounds for all lowerings, but not with such a bound.
func TestOlderForm(t *testing.T) {
	older := must.Get(Read(strings.NewReader(`{"format":"dahl-certificate 4","objective":"time","layers":{"of":"","leaves":[{"least":[0],"most":[1],"bounds":[1],"proofs":[{"units":[0.5],"chain":0.25,"moves":[[0,3]]}]}]},"leaves":[]}`)))(t)
	if got, want := fmt.Sprint(*older.Layers.Leaves[0].Proofs[0]), "{[0.5] [0.25] [[[0 3]]]}"; got != want {
		t.Errorf("read as %s, want %s", got, want)
	}
	must.Get(Read(strings.NewReader(`{"format":"dahl-certificate 3","objective":"time","leaves":[]}`)))(t)
	for _, text := range []string{`{"format":"dahl-certificate 3","objective":"time","layers":{"of":"","leaves":[]},"leaves":[]}`, `{"format":"dahl-certificate 2","objective":"time","leaves":[]}`} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "its format is") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

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
}
