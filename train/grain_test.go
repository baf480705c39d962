package train

import (
	"reflect"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/platform"
)

// TestManyCores: nine cores, in two kinds here, get finer tiles than eight. With 2 MiB of cache a tile of vgg11's 256→256 convolution
// at 8×8 has 32 of 64 samples and 128 filters for eight cores, and one sample for more, since its filters alone, 2.4 MB, fill the cache.
func TestManyCores(t *testing.T) {
	m := must.Get(models.ByName("vgg11"))(t)
	of := func(slow int) (*platform.Platform, dag.Lowering) {
		p := &platform.Platform{Devices: []platform.Device{
			{Name: "fast", Kind: platform.CPU, Count: 5, L2Bytes: 2 << 20}, {Name: "slow", Kind: platform.CPU, Count: slow, L2Bytes: 1 << 20}}}
		return p, DefaultLowering(m, p, 64, dag.Float32)
	}
	eight, few := of(3)
	nine, many := of(4)
	if grainOf(eight) == grainOf(nine) || !reflect.DeepEqual(few, nn.DefaultLowering(m, 64, 2<<20, dag.Float32)) || !reflect.DeepEqual(many, nn.FineLowering(m, 64, 2<<20, dag.Float32)) {
		t.Error("eight cores and nine do not have the lowerings for few and for many")
	}
	nine.Devices[0].Count, nine.Devices[0].Whole = 1, 5
	if !reflect.DeepEqual(many, DefaultLowering(m, nine, 64, dag.Float32)) {
		t.Error("five cores of nine do not have the lowering of the machine")
	}
	if a, b := few.Of("features.11").Forward, many.Of("features.11").Forward; a != (dag.Cut{Samples: 32, Outputs: 128}) || b.Samples != 1 {
		t.Errorf("tiles of 256→256: %+v and %+v", a, b)
	}
}
