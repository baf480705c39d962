package execute

import (
	"testing"
	"unsafe"
)

// TestAlignedBytes: memory begins on a cache line, from the size of a huge page on
// such a page, and is zero, with the guard behind it.
func TestAlignedBytes(t *testing.T) {
	for _, size := range []int64{0, 1, 4097, hugePageBytes - 1, hugePageBytes, 3*hugePageBytes + 5} {
		b := alignedBytes(size)
		align := uintptr(alignBytes)
		if size >= hugePageBytes {
			align = hugePageBytes
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at%align != 0 || int64(len(b)) != size || int64(cap(b)) != size+guardBytes {
			t.Errorf("%d bytes at %x, capacity %d", len(b), at, cap(b))
		}
		for k, v := range b[:cap(b)] {
			if v != 0 {
				t.Fatalf("byte %d of %d is %d", k, size, v)
			}
		}
	}
}

// TestTouchCoversEveryPage marks the pages and lets the parts clear their first bytes:
// none is left out and nothing else changes, whatever the number of parts.
func TestTouchCoversEveryPage(t *testing.T) {
	for _, size := range []int64{0, 1, 4095, 4096, 4097, 7*pageBytes + 3, 31 * pageBytes} {
		for _, parts := range []int{1, 2, 3, 5} {
			var a arenas
			a[0] = alignedBytes(size)
			for k := range a[0] {
				a[0][k] = 1
			}
			for part := range parts {
				a.touch(part, parts)
			}
			for k, v := range a[0] {
				if touched := v == 0; touched != (k%pageBytes == 0) {
					t.Errorf("%d bytes in %d parts: byte %d is %d", size, parts, k, v)
				}
			}
		}
	}
}

// TestPoisonFillsEverything: all bytes of all parts together, the guard included.
func TestPoisonFillsEverything(t *testing.T) {
	for _, size := range []int64{0, 1, 4097, 5*pageBytes + 7} {
		for _, parts := range []int{1, 2, 3, 7} {
			var a arenas
			a[1] = alignedBytes(size)
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
