package strategy

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestFoldedStages: 2×3 devices share each of two places, and each place has two stages in turn. The places are the first of six GPUs each. Of four blocks each stage has one.
func TestFoldedStages(t *testing.T) {
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "m"}}}
	for i := range 12 {
		p.Devices = append(p.Devices, platform.Device{Name: string(rune('a' + i)), Kind: platform.CUDA, Count: 1})
	}
	must.Do(t, p.Complete())
	n := &Network{Platform: p, Fixed: true}
	for _, name := range []string{"input", "wte", "h.0.ln", "h.0.fc", "h.1.ln", "h.1.fc", "h.2.ln", "h.3.ln", "h.3.fc2", "ln_f"} {
		n.Layers = append(n.Layers, Layer{Name: name})
	}
	of := must.Get(ByName("megatron:2x3x2x2x4"))(t)
	l := must.Get(of.Split.Lowering(n))(t)
	var got []string
	for _, s := range l.Stages {
		got = append(got, s.From+" "+s.Device)
	}
	if want := []string{"input a", "h.1.ln g", "h.2.ln a", "h.3.ln g"}; !slices.Equal(got, want) {
		t.Errorf("stages %v, want %v", got, want)
	}
	if want := (dag.Fold{Tensor: 2, Data: 3}); l.Fold != want || l.MicroBatches != 4 || l.Order != "interleaved" {
		t.Errorf("fold %+v, %d micro-batches, order %s", l.Fold, l.MicroBatches, l.Order)
	}
	if _, err := must.Get(ByName("megatron:2x1x3x1x4"))(t).Split.Lowering(n); err == nil {
		t.Error("four blocks in three stages are not refused")
	}
}
