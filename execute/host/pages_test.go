package host

import (
	"testing"
	"unsafe"
)

// TestAlignedBytes: memory begins on a page, from the size of a huge page on
// such a page, and is zero, with the guard behind it.
func TestAlignedBytes(t *testing.T) {
	for _, size := range []int64{0, 1, 4097, hugePageBytes - 1, hugePageBytes, 3*hugePageBytes + 5} {
		b := AlignedBytes(size)
		align := uintptr(PageBytes)
		if size >= hugePageBytes {
			align = hugePageBytes
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at%align != 0 || int64(len(b)) != size || int64(cap(b)) != size+GuardBytes {
			t.Errorf("%d bytes at %x, capacity %d", len(b), at, cap(b))
		}
		for k, v := range b[:cap(b)] {
			if v != 0 {
				t.Fatalf("byte %d of %d is %d", k, size, v)
			}
		}
	}
}
