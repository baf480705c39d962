package execute

import "golang.org/x/sys/unix"

// adviseHugePages asks the system to back memory, which begins on a page, with huge
// pages when it is first touched. A system that refuses leaves small ones, which are
// slower and otherwise the same.
func adviseHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
