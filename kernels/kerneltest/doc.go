// Package kerneltest holds what every implementation of the operations in package
// kernels is tested with: calls of all operations with their data ([Each], [Case]), and
// what their results must be ([Expect]): those of the reference, bit for bit or within
// bounds derived for each operation. The tests of package kernels use it for the variants
// that run on a processor, those of package execute for those of a device.
package kerneltest
