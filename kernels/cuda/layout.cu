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

template <class T>
DEVICE void layout(const LayoutParams& p) {
  SHARED(T, tile, [kTile][kTile + 1]);
  const int32_t row0 = int32_t(blockIdx.x) / p.tiles * kTile, column0 = int32_t(blockIdx.x) % p.tiles * kTile;
  const int32_t column = column0 + threadIdx.x, row = row0 + threadIdx.x;
  const int32_t in_column = offset(p.columns, column).in, out_row = offset(p.rows, row).out;
  for (int32_t outer = blockIdx.y; outer < p.outer; outer += gridDim.y) {
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

ENTRY(layout_f32, LayoutParams, kTile * kRows) { layout<float>(p); }
ENTRY(layout_f64, LayoutParams, kTile * kRows) { layout<double>(p); }

}  // namespace dahl
