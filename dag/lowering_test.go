package dag

import (
	"encoding/json"
	"testing"
)

// TestOlderLowerings: the layout and the fusion that older runs name are read and not kept, and other keys are mistakes.
func TestOlderLowerings(t *testing.T) {
	for text, fits := range map[string]bool{
		`{"Default": {"forward": {"samples": 3}}, "Layout": "nhwc", "Fused": true}`: true,
		`{"Default": {"forward": {"samples": 3}}}`:                                  true,
		`{"Default": {"forward": {"samples": 3}}, "Layouts": "nhwc"}`:               false,
	} {
		var l Lowering
		if err := json.Unmarshal([]byte(text), &l); (err == nil) != fits || fits && l.Of("conv1").Forward.Samples != 3 {
			t.Errorf("%s: %+v, error %v", text, l, err)
		}
	}
}
