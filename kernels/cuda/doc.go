// Package cuda holds the CUDA kernels: their sources (*.cu, over the primitives of
// device.h), the PTX that `make ptx` compiles from them, and the form in which a call
// is handed to a driver, [Launch]. It calls no driver itself, so it builds everywhere;
// PTX is embedded only with the build tag cuda.
//
// # Conventions
//
//   - a kernel has one parameter, a struct by value of plain fields, mirrored in Go
//     beside the operation; sizes are compared by a test
//   - symbols are op_variant_type, dots as underscores: softmax_xent_cuda_f32. Where one
//     operation needs several kernels, the variant is followed by what the kernel does
//   - sums are taken in an order fixed by extents and grid, and grids depend on extents
//     alone: results are bit-identical from run to run. There are no float atomics
package cuda
