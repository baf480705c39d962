// Package cuda holds the CUDA kernels: their sources (*.cu, over the primitives of
// device.h), the PTX that `make ptx` compiles from them and compresses, and the form in
// which a call is handed to a driver, [Launch]. It calls no driver itself, so it builds
// everywhere; PTX is embedded only with the build tag cuda.
//
// # Conventions
//
//   - a kernel has one parameter, a struct by value of plain fields, mirrored in Go
//     beside the operation; sizes are compared by a test
//   - symbols are what the kernel does and its type, for the other variants than "cuda"
//     with the variant between, dots as underscores: dense_dw_f32, conv2d_nhwc_tf32_f32
//   - the compiler fuses no product with a sum: kernels that want it say fma. So operations
//     on single elements give the bits of the CPU variants
//   - sums are taken in an order fixed by extents and grid, and grids depend on extents
//     alone: results are bit-identical from run to run. There are no float atomics
package cuda
