//go:build cuda

package cuda

import (
	"strings"
	"testing"
	"unsafe"
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
		if err != nil || !strings.Contains(text, "\n.target "+c.target+"\n") {
			t.Errorf("%s for %d: %v, or it is not for %s", c.module, c.capability, err, c.target)
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

// TestPTXOnce: several devices of one kind share a text, and modules that nobody asked for
// stay compressed.
func TestPTXOnce(t *testing.T) {
	clear(texts.byFile)
	var first [2]string
	for i := range first {
		var err error
		if first[i], err = PTX("dense", 90); err != nil {
			t.Fatal(err)
		}
	}
	if unsafe.StringData(first[0]) != unsafe.StringData(first[1]) {
		t.Error("the text is decompressed twice")
	}
	if len(texts.byFile) != 1 {
		t.Errorf("%d texts are kept after one was asked for", len(texts.byFile))
	}
}
