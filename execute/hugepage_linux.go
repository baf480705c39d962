package execute

import "golang.org/x/sys/unix"

// adviseHugePages asks the system to back memory, which begins on a page, with huge pages when it
// is first touched. If the system refuses, small pages work the same, only slower.
func adviseHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
