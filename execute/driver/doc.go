// Package driver is the seam between the executor and devices with memories of their own. A kind of
// devices is executed if it has a [Driver] and a [Backend] that opens it. The emulated device
// (package emulated) and CUDA (package cuda) have both.
package driver
