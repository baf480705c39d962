// Package cuda holds the CUDA kernels: their sources (*.cu, over the primitives of device.h) and the
// PTX that `make ptx` compiles from them and compresses. Package kernels says how they are launched.
// The package calls no driver itself, so it builds everywhere. PTX is embedded only
// with the build tag cuda.
//
// # Conventions
//
//   - A kernel has one parameter, a struct by value of plain fields. Package gpu mirrors it
//     in Go, and a test compares the two.
//   - A symbol is the kernel's operation and type. For variants other than "cuda" the variant
//     stands between, and dots become underscores: dense_dw_f32, conv2d_nhwc_tf32_f32.
//   - The compiler fuses no product with a sum; kernels that want it say fma. So operations on
//     single elements give the bits of the CPU variants.
//   - Extents and grid fix the order of sums, and grids depend on extents alone. So results are
//     bit-identical from run to run. There are no float atomics.
package cuda
