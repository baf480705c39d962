package host

import "unsafe"

const (
	// PageBytes is the size of a small page of memory, or less.
	PageBytes = 4096
	// Align is the alignment of arenas and of workspace on which a kernel may rely: a cache line, and the widest vector.
	Align = 64
	// GuardBytes follow the bytes of [AlignedBytes], up to their capacity.
	GuardBytes = 4096
	// hugePageBytes is the size and alignment of a huge page.
	hugePageBytes = 2 << 20
)

// AlignedBytes returns size zero bytes with the guard as spare capacity. They begin on a page, a
// huge one if they fill one.
func AlignedBytes(size int64) []byte {
	align := PageBytes
	if size >= hugePageBytes {
		align = hugePageBytes
	}
	raw := make([]byte, size+GuardBytes+int64(align))
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & (align - 1)
	b := raw[skip : skip+int(size) : skip+int(size)+GuardBytes]
	if size >= hugePageBytes {
		adviseHugePages(b)
	}
	return b
}

// WholePages extends memory from AlignedBytes to the end of its last page, which lies in the
// guard.
func WholePages(b []byte) []byte {
	whole := (len(b) + PageBytes - 1) &^ (PageBytes - 1)
	return b[:whole:whole]
}
