package cli

import "testing"

func TestOneLine(t *testing.T) {
	err := InputErrorf("one\n\n\tand\r\nmore")
	if got, want := OneLine(err), "one; and; more"; got != want {
		t.Errorf("oneLine = %q, want %q", got, want)
	}
}
