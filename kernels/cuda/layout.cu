// Conversions between layouts: y takes every element of x, and what is contiguous in x is
// not in y. All of them are transpositions of a matrix whose columns are contiguous in x and
// whose rows are contiguous in y, each made of up to three dimensions, once for every index
// of a further dimension, the samples. Distances within a sample are 32 bits wide, which
// saves a third of the registers.
//
// A block moves a tile of 32×32 through shared memory, so that both sides are read and
// written in runs of 32 elements; the 33rd column keeps the banks apart. Each of the 256
// threads has four loads under way.
#include "division.h"

namespace dahl {

// Axis is some dimensions as one, the last fastest. It is mirrored by kernels.axisParams.
struct Axis {
  Division extent1, extent2;  // of the last two
  int32_t count;              // of all
  int32_t in[3], out[3];      // distances in x and in y, in elements
};

struct LayoutParams {
  uint64_t y, x;
  Axis rows, columns;
  int64_t in_outer, out_outer;
  int32_t outer, tiles;      // tiles side by side
};

struct Offset {
  int32_t in, out;
};

DEVICE Offset offset(const Axis& a, int32_t i) {
  int32_t i1, i2;
  const int32_t i0 = a.extent1.split(a.extent2.split(i, i2), i1);
  return {a.in[0] * i0 + a.in[1] * i1 + a.in[2] * i2, a.out[0] * i0 + a.out[1] * i1 + a.out[2] * i2};
}

constexpr int kTile = 32, kRows = 8;

// layout moves one tile of every layers-th index of the outer dimension, from one on.
template <class T>
DEVICE void layout(const LayoutParams& p, int32_t block, int32_t first, int32_t layers) {
  SHARED(T, tile, [kTile][kTile + 1]);
  const int32_t row0 = block / p.tiles * kTile, column0 = block % p.tiles * kTile;
  const int32_t column = column0 + threadIdx.x, row = row0 + threadIdx.x;
  const int32_t in_column = offset(p.columns, column).in, out_row = offset(p.rows, row).out;
  for (int32_t outer = first; outer < p.outer; outer += layers) {
    const T* x = global<const T>(p.x) + (p.in_outer * outer + in_column);
    T* y = global<T>(p.y) + (p.out_outer * outer + out_row);
#pragma unroll
    for (int i = threadIdx.y; i < kTile; i += kRows)
      if (row0 + i < p.rows.count && column < p.columns.count) tile[i][threadIdx.x] = x[offset(p.rows, row0 + i).in];
    sync();
#pragma unroll
    for (int i = threadIdx.y; i < kTile; i += kRows)
      if (column0 + i < p.columns.count && row < p.rows.count) y[offset(p.columns, column0 + i).out] = tile[threadIdx.x][i];
    sync();
  }
}

ENTRY(layout_f32, LayoutParams, kTile * kRows) { layout<float>(p, blockIdx.x, blockIdx.y, gridDim.y); }
ENTRY(layout_f64, LayoutParams, kTile * kRows) { layout<double>(p, blockIdx.x, blockIdx.y, gridDim.y); }

// LayoutPair is two conversions, whose blocks follow each other: tiles of a layer, then
// layers. It is mirrored by kernels.layoutPair.
struct LayoutPair {
  LayoutParams first, second;
  int32_t first_tiles, second_tiles, first_layers, second_layers;
};

template <class T>
DEVICE void layout_pair(const LayoutPair& p) {
  const int32_t block = blockIdx.x, next = block - p.first_tiles * p.first_layers;
  if (next < 0)
    layout<T>(p.first, block % p.first_tiles, block / p.first_tiles, p.first_layers);
  else
    layout<T>(p.second, next % p.second_tiles, next / p.second_tiles, p.second_layers);
}

ENTRY(layout_pair_f32, LayoutPair, kTile * kRows) { layout_pair<float>(p); }
ENTRY(layout_pair_f64, LayoutPair, kTile * kRows) { layout_pair<double>(p); }

}  // namespace dahl
