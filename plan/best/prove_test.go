package best

import (
	"cmp"
	"slices"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
)

// TestLike: bounds of the sets of 8 to 15 units are raised together. A set whose bound is as high as
// the best plan is left alone, and so is one whose bound was raised so before.
func TestLike(t *testing.T) {
	p, err := platform.Load("../../platforms/manycore.toml") // 64 cores
	if err != nil {
		t.Fatal(err)
	}
	f := &finder{Options: &Options{Aim: problem.Aim{Objective: problem.Time}}, best: &candidate{Attempt: Attempt{Value: 10}}}
	for _, set := range []string{"cpu:9", "cpu:2", "cpu:8", "cpu:12", "cpu:15", "cpu:16", ""} {
		priced := must.Get(oneTask(p, set, 1000))(t)
		f.candidates = append(f.candidates, &candidate{Attempt: Attempt{Choice: space.Choice{Devices: set}}, priced: priced, graph: "g", proofState: proofState{bound: 5}})
	}
	f.candidates[0].bound = 10
	of := f.candidates[3]
	for _, step := range []struct {
		by   int
		want []string
	}{
		{byOctave, []string{"cpu:12", "cpu:15", "cpu:8"}},
		{byOctave, []string{"cpu:12"}},
	} {
		of.by = step.by
		var got []string
		for _, c := range f.like(of) {
			got = append(got, cmp.Or(c.Devices, "all"))
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", step.by, got, step.want)
		}
	}
}
