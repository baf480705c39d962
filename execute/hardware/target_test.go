package hardware

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/schedule"
)

// TestOffers: on any machine the default stays open and has the greatest workspace of all
// variants but those of libraries, since it does not depend on who asks; here it is the one
// that this machine runs. One asked for by name goes before both where the operation has it
// for the kind. What the caller does is offered on processors alone, and an operation that no
// kernel has everywhere, without a name.
func TestOffers(t *testing.T) {
	b := dag.NewBuilder("conv")
	buffer := func(name string, shape ...int) dag.Access {
		id := b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: dag.Float32, Role: dag.Workspace})
		return dag.Access{Region: dag.Region{Buffer: id}, Mode: dag.Read}
	}
	y := buffer("y", 2, 7, 11, 5)
	y.Mode = dag.Write
	kernels.Add(b, dag.Task{Name: "conv", Op: "conv2d.nhwc", Type: dag.Float32,
		Params:   []dag.Param{{Name: "stride", Value: 1}, {Name: "top", Value: 1}, {Name: "left", Value: 1}, {Name: "relu", Value: 0}},
		Accesses: []dag.Access{y, buffer("x", 2, 7, 11, 3), buffer("w", 3, 3, 3, 5)}})
	g := must.Get(b.Build())(t)
	k := must.Get(kernels.KernelByName("conv2d.nhwc"))(t)
	bytes, greatest := map[string]int64{}, int64(0)
	for _, o := range (Target{}).Offers(g, 0, "cpu")[1:] {
		bytes[o.Variant] = o.WorkspaceBytes
		if v, _ := k.Variant(o.Variant); !v.Transforms { // which nobody takes by itself
			greatest = max(greatest, o.WorkspaceBytes)
		}
	}
	const sums = 49 * 64 // of the reference: 2·5·7·11 elements of 4 bytes, in whole cache lines
	if bytes["ref"] != sums || bytes["avx2"] == 0 || len(bytes) != slices.IndexFunc(k.Variants, func(v calls.Variant) bool { return !v.RunsOn(calls.GoCode) }) {
		t.Errorf("workspaces %v", bytes)
	}
	onDevice := (greatest + 255) / 256 * 256
	for _, c := range []struct {
		target Target
		kind   string
		want   schedule.Offer
	}{
		{Target{}, "cpu", schedule.Offer{WorkspaceBytes: greatest}},
		{Target{}, "emulated", schedule.Offer{WorkspaceBytes: onDevice}},
		{Target{ThisMachine: true}, "cpu", schedule.Offer{Variant: k.Default().Name, WorkspaceBytes: bytes[k.Default().Name]}},
		{Target{Variant: "ref"}, "cpu", schedule.Offer{Variant: "ref", WorkspaceBytes: sums}},
		{Target{Variant: "cuda"}, "cpu", schedule.Offer{WorkspaceBytes: greatest}}, // which is for other devices
	} {
		offers := c.target.Offers(g, 0, c.kind)
		if offers[0] != c.want || (len(offers) == 1) != (c.target.Variant == "ref") {
			t.Errorf("%+v on %s: %+v, want first %+v", c.target, c.kind, offers, c.want)
		}
	}
}

// TestOffersOfPoints: feed is the caller's, and nothing knows what "fold" is.
func TestOffersOfPoints(t *testing.T) {
	b := dag.NewBuilder("points")
	feed := b.Task(dag.Task{Name: "a", Op: "feed"})
	fold := b.Task(dag.Task{Name: "b", Op: "fold"})
	g := must.Get(b.Build())(t)
	for kind, want := range map[string]int{"cpu": 1, "emulated": 0, "cuda": 0} {
		if got := (Target{}).Offers(g, feed, kind); len(got) != want {
			t.Errorf("feed on %s: %v", kind, got)
		}
	}
	if got := (Target{Variant: "ref"}).Offers(g, fold, "cuda"); !slices.Equal(got, []schedule.Offer{{}}) {
		t.Errorf("fold: %v", got)
	}
}
