package execute

import (
	"testing"

	"dahl/execute/host"
)

// TestTouchCoversEveryPage marks the pages and lets the parts clear their first bytes:
// none is left out and nothing else changes, whatever the number of parts.
func TestTouchCoversEveryPage(t *testing.T) {
	for _, size := range []int64{0, 1, 4095, 4096, 4097, 7*host.PageBytes + 3, 31 * host.PageBytes} {
		for _, parts := range []int{1, 2, 3, 5} {
			var a arenas
			a[0] = host.AlignedBytes(size)
			for k := range a[0] {
				a[0][k] = 1
			}
			for part := range parts {
				a.touch(part, parts)
			}
			for k, v := range a[0] {
				if touched := v == 0; touched != (k%host.PageBytes == 0) {
					t.Errorf("%d bytes in %d parts: byte %d is %d", size, parts, k, v)
				}
			}
		}
	}
}

// TestPoisonFillsEverything: all bytes of all parts together, the guard included.
func TestPoisonFillsEverything(t *testing.T) {
	for _, size := range []int64{0, 1, 4097, 5*host.PageBytes + 7} {
		for _, parts := range []int{1, 2, 3, 7} {
			var a arenas
			a[1] = host.AlignedBytes(size)
			for part := range parts {
				a.poison(part, parts)
			}
			for k, v := range a[1][:cap(a[1])] {
				if v != poison {
					t.Fatalf("%d bytes in %d parts: byte %d is %d", size, parts, k, v)
				}
			}
		}
	}
}
