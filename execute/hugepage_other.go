//go:build !linux

package execute

// adviseHugePages does nothing: the system decides.
func adviseHugePages([]byte) {}
