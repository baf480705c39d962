// Package kerneltest holds the tests that every implementation of the operations in package
// kernels has to pass. [Each] and [Case] are calls of all operations with their data. [Expect]
// gives their results: as the reference has them, bit for bit or within bounds derived for each
// operation. The tests of package kernels use it for the variants that run on a processor, and the tests
// of package execute for the variants of a device.
package kerneltest
