package execute

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// TestScratchOfVariants: costs that leave the variant open count the greatest
// workspace of all, whatever this machine would run; named ones that of theirs; and one asked for
// by name goes before these where the operation has it.
func TestScratchOfVariants(t *testing.T) {
	b := dag.NewBuilder("conv")
	buffer := func(name string, shape ...int) dag.Access {
		id := b.Buffer(dag.Buffer{Name: name, Shape: shape, Type: dag.Float32, Role: dag.Workspace})
		return dag.Access{Region: dag.Region{Buffer: id}, Mode: dag.Read}
	}
	y := buffer("y", 2, 5, 7, 11)
	y.Mode = dag.Write
	kernels.Add(b, dag.Task{Name: "conv", Op: "conv2d", Type: dag.Float32,
		Params:   []dag.Param{{Name: "pad", Value: 1}, {Name: "stride", Value: 1}},
		Accesses: []dag.Access{y, buffer("x", 2, 3, 7, 11), buffer("w", 5, 3, 3, 3)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	prog := &dag.Program{Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	asked := func(name, variant string) int64 {
		c := &schedule.Costs{Class: []int32{0}, ByClass: [][]schedule.Cost{{{Duration: 1, Variant: variant}}}}
		return ScratchBytes(prog, []*schedule.Costs{c}, name, 3)[0]
	}
	scratch := func(variant string) int64 { return asked("", variant) }
	k, _ := kernels.KernelByName("conv2d")
	greatest := int64(0)
	for i := range k.Variants {
		greatest = max(greatest, scratch(k.Variants[i].Name))
	}
	if open := scratch(""); open != greatest || open == 0 {
		t.Errorf("open: %d bytes, the greatest of the variants needs %d", open, greatest)
	}
	if scratch("ref") != 0 {
		t.Error("the reference needs a workspace")
	}
	const named = "avx2"
	if of := scratch(named); of == 0 || asked(named, "") != of || asked(named, "ref") != of || asked("ref", named) != 0 {
		t.Errorf("%s needs %d bytes; asked for: %d, over a model of the reference %d; the reference over it %d",
			named, of, asked(named, ""), asked(named, "ref"), asked("ref", named))
	}
	if got := asked("cuda", named); got != scratch(named) { // which is for other devices
		t.Errorf("asked for what cores do not run: %d bytes, want %d", got, scratch(named))
	}
	// Five cores, a device of two units with a memory of its own, a memory nobody uses.
	p := &platform.Platform{Memories: []platform.Memory{{Name: "none"}, {Name: "ram"}, {Name: "own"}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 5, Memory: 1}, {Name: "e", Kind: "emulated", Count: 2, Memory: 2}}}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	piece := greatest / 3
	onDevice := (piece + 255) / 256 * 256
	if got := ScratchByMemory(prog, p, nil, "ref"); !slices.Equal(got[0], []int64{0, 0, 0}) {
		t.Errorf("by memory, of the reference: %v, want none", got)
	}
	if got := ScratchByMemory(prog, p, nil, ""); len(got) != 1 || !slices.Equal(got[0], []int64{0, 5 * piece, 2 * onDevice}) {
		t.Errorf("by memory %v, want none, five pieces of %d and two of %d", got, piece, onDevice)
	}
}
