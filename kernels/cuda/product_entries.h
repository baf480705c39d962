// The tiles that products are compiled with, rows×columns · steps of the sum. Variables of
// type kernels.productTile say the same: a test compares them.
//
//	                          elements per thread   why
//	128×64 · 16                 8×4    large results: 43 multiplications per float that is loaded
//	64×64 · 16                  4×4    smaller ones: four times the blocks of 128×128
//	128×32 · 16   2 slices      8×4    many pixels, 32 filters
//	64×32 · 32    2 slices      4×4    the weights of 32 filters
//	128×16 · 16   4 slices      8×4    few filters or classes
//	16×128 · 16   4 slices      4×8    few rows: the weights of a layer of few outputs
//	16×32 · 64    8 slices      4×4    small results of long sums: weights of first convolutions
//	16×16 · 64    16 slices     4×4    the same, of few filters
//
// of which float64 has 64×64 · 16 and 16×32 · 32. On tensor cores, where 32 rows by 32 columns are
// a warp's least:
//
//	128×128 · 16  8 warps       8×8    bf16: · 32, two steps to a word
//	64×64 · 32    2 slices      4×8
//	128×32 · 16   2 slices      4×8    bf16: · 32
//	32×32 · 64    8 slices      4×8    bf16: · 128
//
// All have 256 threads. Registers (65536 per multiprocessor) are bounded so that two blocks fit,
// which hide each other's barriers. 128×128 has 64 sums per thread and needs more than 128; so
// have float64 and sm_75, where one block waits for nothing but its two multiplications per cycle.
#pragma once

#include "product.h"

// PRODUCT(symbol, math, tile, a, a_taps, b, b_taps): see Feed for the taps.
#define PRODUCT(symbol, math, tile, a, a_taps, b, b_taps) \
  ENTRY(symbol, ProductParams, 256, tile<math>::resident) { tile<math>::run<a, a_taps, b, b_taps>(p); }

namespace dahl {

template <class Math> using Tile128x64 = Product<Math, 128, 64, 16, 8, 4, 1>;
template <class Math> using Tile64x64 = Product<Math, 64, 64, 16, 4, 4, 1>;
template <class Math> using Tile128x32 = Product<Math, 128, 32, 16, 8, 4, 2>;
template <class Math> using Tile64x32 = Product<Math, 64, 32, 32, 4, 4, 2>;
template <class Math> using Tile128x16 = Product<Math, 128, 16, 16, 8, 4, 4>;
template <class Math> using Tile16x128 = Product<Math, 16, 128, 16, 4, 8, 4>;
template <class Math> using Tile16x32 = Product<Math, 16, 32, 256 / sizeof(typename Math::Real), 4, 4, 8>;
template <class Math> using Tile16x16 = Product<Math, 16, 16, 64, 4, 4, 16>;

template <class Math> using Tensor128x128 = Product<Math, 128, 128, 16 * Math::pack, 8, 8, 1>;
template <class Math> using Tensor64x64 = Product<Math, 64, 64, 32, 4, 8, 2>;
template <class Math> using Tensor128x32 = Product<Math, 128, 32, 16 * Math::pack, 4, 8, 2>;
template <class Math> using Tensor32x32 = Product<Math, 32, 32, 64 * Math::pack, 4, 8, 8>;

using Float32 = Simt<float>;
using Float64 = Simt<double>;
#if DAHL_SM >= 80
using TF32 = Tensor<false>;
using BF16 = Tensor<true>;
#endif

}  // namespace dahl
