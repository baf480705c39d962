// Tiles of attention in shared memory, and their products. Rows of a tile stay with a block, 16 for each warp; columns are positions that come
// by, a tile of them after the other. A lane (g, t) = (lane/4, lane%4) of a warp holds what mma leaves of 16 rows by blocks of eight columns:
// rows g and g+8, columns 2t and 2t+1 of each block.
//
// A row of shared memory is a position with its features and 8 words more. Column n of a block is position column_at(n). Both together
// let all accesses below meet different banks: lanes read 4t to 4t+3 of position column_at(g), and word g of positions column_of(t, 0) or column_of(t, 1).
#pragma once

#include "attention.h"

#if DAHL_SM >= 80
namespace dahl {

// Shape is the extents of tiles for heads of so many features, or of fewer with zeros behind them.
template <int features_>
struct Shape {
  static constexpr int features = features_, pitch = features + 8;
  static constexpr int warps = features > 64 ? 2 : 4, threads = 32 * warps, rows = 16 * warps;
  static constexpr int columns = features > 64 ? 16 : 32, blocks = columns / 8;
  static constexpr int own = rows * pitch, stage = columns * pitch;  // floats of an operand
  using Scores = float[blocks][4];
  using Sums = float[features / 8][4];
};

DEVICE int column_of(int t, int odd) { return odd ? (t ^ 2) + 4 : t; }
DEVICE int column_at(int n) { return column_of(n / 2, n % 2); }

// start_copy starts copies of the features of `count` positions from first on. Positions from end on, and features behind the head's, are 0.
template <class S, int count>
DEVICE void start_copy(float* to, const AttentionParams& p, const Features& f, const Task& of, int first, int end) {
  const float* from = features<const float>(p, f, of.sample, 0, of.head);
#pragma unroll 2
  for (int j = 0; j < count * (S::features / 4) / S::threads; j++) {
    const int i = int(threadIdx.x) + j * S::threads, row = i / (S::features / 4), d = i % (S::features / 4) * 4;
    const int there = first + row < end ? p.width - d : 0;
    const float* unit = from + (f.position * (first + row) + d);
    float* place = to + row * S::pitch + d;
    if (p.vector) {
      copy_async<16>(place, unit, there > 0 ? 16 : 0);
    } else {
#pragma unroll
      for (int w = 0; w < 4; w++) copy_async<4>(place + w, unit + w, there > w ? 4 : 0);
    }
  }
}

// Stream is two operands of the columns, of which one tile is under way while another one is used. Positions from lo to hi come by for each of some heads.
template <class S>
struct Stream {
  const AttentionParams& p;
  const Features &a, &b;
  Task of;  // its head is the first one
  int lo, end, tiles, steps;
  float* stages;

  DEVICE Stream(const AttentionParams& params, const Features& first, const Features& second, Task task, int heads, int from, int to, int positions, float* at)
      : p(params), a(first), b(second), of(task), lo(from / S::columns * S::columns), end(positions), stages(at) {
    tiles = from < to ? (to - lo + S::columns - 1) / S::columns : 0;
    steps = tiles * heads;
    start(0);
  }

  DEVICE int column(int step) const { return lo + step % tiles * S::columns; }
  DEVICE int head(int step) const { return of.head + step / tiles; }

  DEVICE void start(int step) {
    if (step >= steps) return;
    float* to = stages + step % 2 * 2 * S::stage;
    const Task task = {of.sample, head(step), 0};
    start_copy<S, S::columns>(to, p, a, task, column(step), end);
    start_copy<S, S::columns>(to + S::stage, p, b, task, column(step), end);
    copy_commit();
  }

  // next waits for a tile, and starts the one behind it where all threads have used the one before.
  DEVICE const float* next(int step) {
    copy_wait<0>();
    sync();
    start(step + 1);
    return stages + step % 2 * 2 * S::stage;
  }
};

// Products by fma, in the type itself. Lanes read rows, and pass weights on by shuffles.
struct Simt {
  // along adds the products of rows and columns along the features.
  template <class S>
  DEVICE static void along(typename S::Scores& to, const float* rows, const float* columns) {
    const int g = lane() / 4, t = lane() % 4;
    const float *a = rows + g * S::pitch, *b = columns + t * S::pitch, *c = columns + column_of(t, 1) * S::pitch;
#pragma unroll 2
    for (int d = 0; d < S::features; d += 4) {
      const float4 x[2] = {*reinterpret_cast<const float4*>(a + d), *reinterpret_cast<const float4*>(a + 8 * S::pitch + d)};
#pragma unroll
      for (int j = 0; j < S::blocks; j++) {
        const float4 y[2] = {*reinterpret_cast<const float4*>(b + 8 * j * S::pitch + d), *reinterpret_cast<const float4*>(c + 8 * j * S::pitch + d)};
#pragma unroll
        for (int e = 0; e < 16; e++) to[j][e % 4] = fma(x[e % 4 / 2][e / 4], y[e % 2][e / 4], to[j][e % 4]);
      }
    }
  }

  // across adds the columns, weighted for each row.
  template <class S>
  DEVICE static void across(typename S::Sums& to, const typename S::Scores& weight, const float* columns) {
    const int quad = lane() / 4 * 4;
    const float* b = columns + lane() % 4 * 2;
#pragma unroll 1
    for (int u = 0; u < 4; u++)
#pragma unroll
      for (int n = 0; n < 2 * S::blocks; n++) {
        const float x[2] = {shuffle(weight[n / 2][n % 2], quad + u), shuffle(weight[n / 2][2 + n % 2], quad + u)};
        const float* row = b + (n / 2 * 8 + column_of(u, n % 2)) * S::pitch;
#pragma unroll
        for (int j = 0; j < S::features / 8; j++) {
          const float2 y = *reinterpret_cast<const float2*>(row + 8 * j);
#pragma unroll
          for (int e = 0; e < 4; e++) to[j][e] = fma(x[e / 2], y[e % 2], to[j][e]);
        }
      }
  }
};

// Tensor is products on tensor cores, of factors that are rounded when they are read, to bf16 or to tf32. Sums are in any order, so that a lane's steps are
// those that it has or reads at once: four features that follow each other, or the columns of its weights.
template <bool bf16>
struct Tensor {
  // Factors are what a lane has of 16 steps of two rows, or of a column: two words of bf16, or four of tf32, of each.
  struct Factors {
    uint32_t word[bf16 ? 2 : 4];

    DEVICE explicit Factors(const float4& x) {
#pragma unroll
      for (int i = 0; i < (bf16 ? 2 : 4); i++) word[i] = bf16 ? round_bf16(x[2 * i], x[2 * i + 1]) : round_tf32(x[i]);
    }
  };

  DEVICE static void multiply(float (&to)[4], const Factors (&x)[2], const Factors& y) {
#pragma unroll
    for (int i = 0; i < (bf16 ? 2 : 4); i += 2) {
      const uint32_t a[4] = {x[0].word[i], x[1].word[i], x[0].word[i + 1], x[1].word[i + 1]}, b[2] = {y.word[i], y.word[i + 1]};
      if constexpr (bf16)
        mma_bf16(to, a, b);
      else
        mma_tf32(to, a, b);
    }
  }

  template <class S>
  DEVICE static void along(typename S::Scores& to, const float* rows, const float* columns) {
    const int g = lane() / 4, t = lane() % 4;
    const float *a = rows + g * S::pitch + 4 * t, *b = columns + column_at(g) * S::pitch + 4 * t;
#pragma unroll
    for (int d = 0; d < S::features; d += 16) {
      const Factors x[2] = {Factors(*reinterpret_cast<const float4*>(a + d)), Factors(*reinterpret_cast<const float4*>(a + 8 * S::pitch + d))};
#pragma unroll
      for (int j = 0; j < S::blocks; j++) multiply(to[j], x, Factors(*reinterpret_cast<const float4*>(b + 8 * j * S::pitch + d)));
    }
  }

  template <class S>
  DEVICE static void across(typename S::Sums& to, const typename S::Scores& weight, const float* columns) {
    const int g = lane() / 4, t = lane() % 4;
    const float *even = columns + t * S::pitch + g, *odd = columns + column_of(t, 1) * S::pitch + g;
    constexpr int next = 8 * S::pitch;
#pragma unroll
    for (int i = 0; i < S::blocks; i += 2) {
      const float(&w)[4] = weight[i], (&v)[4] = weight[i + 1];
      const Factors x[2] = {Factors(float4{w[0], w[1], v[0], v[1]}), Factors(float4{w[2], w[3], v[2], v[3]})};
#pragma unroll
      for (int j = 0; j < S::features / 8; j++) {
        const int at = i * next + 8 * j;
        multiply(to[j], x, Factors(float4{even[at], odd[at], even[at + next], odd[at + next]}));
      }
    }
  }
};

}  // namespace dahl
#endif
