package dag

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOlderLowerings: plans have named the layout and the fusion that are the only ones now, and others that are refused.
func TestOlderLowerings(t *testing.T) {
	for text, want := range map[string]string{
		`{"Default": {"forward": {"samples": 3}}, "Layout": "nhwc", "Fused": true}`: "",
		`{"Default": {"forward": {"samples": 3}}}`:                                  "",
		`{"Layout": "", "Fused": true}`:                                             `layout "" and fused true; images have their channels last`,
		`{"Layout": "nhwc", "Fused": false}`:                                        `layout "nhwc" and fused false`,
		`{"Defaults": {}}`:                                                          `unknown field "Defaults"`,
	} {
		var l Lowering
		err := json.Unmarshal([]byte(text), &l)
		if want == "" && (err != nil || l.Of("conv1").Forward.Samples != 3*strings.Count(text, "3")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, error %v", text, l, err)
		}
	}
}
