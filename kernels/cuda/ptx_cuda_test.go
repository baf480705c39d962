//go:build cuda

package cuda

import (
	"bytes"
	"strings"
	"testing"
)

// TestPTX: devices get the text for the highest capability they have, or an error that
// says what they lack.
func TestPTX(t *testing.T) {
	for _, c := range []struct {
		module     string
		capability int
		target     string
	}{{"dense", 75, "sm_75"}, {"dense_tensor", 80, "sm_80"}, {"dense_tensor", 89, "sm_80"}, {"dense_tensor", 90, "sm_80"}, {"layout", 90, "sm_75"}} {
		text, err := PTX(c.module, c.capability)
		if err != nil || !bytes.Contains(text, []byte("\n.target "+c.target+"\n")) || bytes.IndexByte(text, 0) != len(text)-1 {
			t.Errorf("%s for %d: %v, or it is not for %s and ended by zero", c.module, c.capability, err, c.target)
		}
	}
	if _, err := PTX("dense", 70); err == nil || !strings.Contains(err.Error(), "7.0") {
		t.Errorf("capability 7.0: error %v", err)
	}
	if _, err := PTX("dense_tensor", 75); err == nil || !strings.Contains(err.Error(), "7.5") {
		t.Errorf("tensor cores for capability 7.5: error %v", err)
	}
	if _, err := PTX("none", 80); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a module that is not there: error %v", err)
	}
}
