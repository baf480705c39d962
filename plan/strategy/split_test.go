package strategy

import (
	"strings"
	"testing"

	"dahl/must"
)

// TestNamesOfNetworks: a name gives a split, whose name it is. Arguments of table lines decide how many numbers there are.
func TestNamesOfNetworks(t *testing.T) {
	for _, name := range []string{"data-parallel:3", "data-parallel:2:tree", "data-parallel:2:ring", "data-parallel:8:hierarchical", "tensor-parallel:2:direct", "spatial:2", "owt:5", "gpipe:2x8", "1f1b:4x8", "interleaved:2x3x8",
		"tensor-parallel:2+1f1b:2x8", "data-parallel:3:direct+interleaved:2x2x7", "1f1b:3x8@conv2,fc1", "data-parallel:2+tensor-parallel:3", "data-parallel:2:tree+spatial:2:tree", "data-parallel:3+owt:2",
		"data-parallel:2+tensor-parallel:3+1f1b:2x8", "data-parallel:2+gpipe:2x4@fc1", "1f1b:3x8:stash", "1f1b:3x8:stash@conv2,fc1",
		"megatron:2x3x5x1x7", "megatron:2x3x2x2x8:whole", "megatron:2x1x2x1x8@fc1"} {
		s := must.Get(ByName(name))(t)
		if got := s.Split.String(); got != name {
			t.Errorf("%s is named %s", name, got)
		}
	}
	// The state of the optimiser is once in any case.
	if got := must.Get(ByName("1f1b:2x8+zero1:2"))(t).Split.String(); got != "data-parallel:2+1f1b:2x8" {
		t.Error(got)
	}
	for _, name := range []string{"tensor-parallel:3+1f1b:2x8+zero1:2", "1f1b:2x8+zero1:2+tensor-parallel:3", "zero1:2+1f1b:2x8+tensor-parallel:3", "data-parallel:2+tensor-parallel:3+1f1b:2x8"} {
		s := must.Get(ByName(name))(t)
		if want := "data-parallel:2+tensor-parallel:3+1f1b:2x8"; s.Split.String() != want || s.Split.Needs() != 12 {
			t.Errorf("%s is %s of %d devices", name, s.Split.String(), s.Split.Needs())
		}
	}
	for name, want := range map[string]string{
		"":                                `strategy "" is not one of data-parallel, zero1, tensor-parallel, spatial, owt, megatron, gpipe, 1f1b, interleaved, pipedream, placement`,
		"zero1":                           `strategy "zero1": write zero1:DEVICES`,
		"zero1:2:ring":                    `strategy "zero1:2:ring": write zero1:DEVICES`,
		"1f1b:2x8:ring":                   `strategy "1f1b:2x8:ring": write 1f1b:DEVICESxMICRO-BATCHES[:stash]`,
		"gpipe:2x8:stash":                 `strategy "gpipe:2x8:stash": write gpipe:DEVICESxMICRO-BATCHES`,
		"1f1b:2x8:stash+zero1:2":          `devices cannot share a stage that stashes weights`,
		"data-parallel:2x2":               `write data-parallel:DEVICES[:direct|ring|tree|hierarchical]`,
		"data-parallel:2:star":            `strategy "data-parallel:2:star": sum "star" is not one of direct, ring, tree, hierarchical`,
		"owt:x":                           `strategy "owt:x": write owt or owt:DEVICES`,
		"1f1b:2x8+gpipe:2x8":              `a network has one pipeline`,
		"tensor-parallel:2+data-parallel": `strategy "data-parallel": write data-parallel:D`,
		"data-parallel:2+zero1:2":         `the devices of a stage share it along samples, and along one dimension more`,
		"owt:2+tensor-parallel:2":         `the devices of a stage share it along samples, and along one dimension more`,
		"zero1:2+owt:2+spatial:3":         `the devices of a stage share it along samples, and along one dimension more`,
		"owt+data-parallel:2":             `say how many devices each strategy has`,
		"1f1b:2x8+owt":                    `say how many devices each strategy has`,
		"spatial:2:tree+zero1:2":          `have one way to add; write ring behind both, or tree`,
		"owt:2+1f1b:2x8":                  `all layers of a stage are shared along one dimension`,
		"pipedream:2+1f1b:2x8":            `only strategies of networks have products`,
		"1f1b:2x8@fc1,fc2":                `@fc1,fc2 names the first layers of all stages`,
		"owt:2@fc1":                       `@fc1 names the first layers of all stages`,
		"data-parallel:2+":                `strategy "" is not one of`,
		"megatron:2":                      `write megatron:TENSORxDATAxPIPELINExSTAGES-EACHxMICRO-BATCHES[:whole]`,
		"megatron:2x1x1x1x1+zero1:2":      `megatron is a product by itself`,
		"megatron:2x1x1x1x1:ring":         `write megatron:TENSORxDATAxPIPELINExSTAGES-EACHxMICRO-BATCHES[:whole]`,
	} {
		if _, err := ByName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
