// Package emulated has a driver of devices that are made of goroutines, for machines without a GPU.
//
// Read first: device.go for the driver, stream.go for the goroutine of a stream, states.go for clocks and sleep.
//
// The kernels are the processor's, so a training on them computes real weights. A call takes no less than the time of its model in
// the platform file, and a transfer no less than the bandwidth and latency of its links. No device is faster than its core.
package emulated
