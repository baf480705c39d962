// Tiles of a product in shared memory: how they lie, and how threads multiply them. How they
// are filled is in product_feed.h.
#pragma once

#include "product_operand.h"

namespace dahl {

// Vectors of 16 bytes of a type, the unit of loads, and of four elements.
typedef float Bytes16OfFloat __attribute__((vector_size(16), may_alias));
typedef double Bytes16OfDouble __attribute__((vector_size(16), may_alias));
typedef double FourDoubles __attribute__((vector_size(32), aligned(16), may_alias));
typedef uint32_t FourWords __attribute__((vector_size(16), may_alias));

template <class T>
struct Vectors;
template <>
struct Vectors<float> {
  using Unit = Bytes16OfFloat;
  using Four = Bytes16OfFloat;
};
template <>
struct Vectors<double> {
  using Unit = Bytes16OfDouble;
  using Four = FourDoubles;
};
template <>
struct Vectors<uint32_t> {
  using Four = FourWords;
};

// swizzle is what the columns of row k of a tile are exclusive-or'ed with: column x lies at
// x ^ swizzle(k) of its row. Rows are a multiple of 32 words long, so without it one column would
// lie in one bank. Groups of 8 columns are exchanged by k and k/4, so that these accesses of
// a warp meet 32 different banks:
//   - stores of an operand that lies along k: lane l holds k = 4·(l%4) + i of column l/4
//   - fragments of mma: k = l%4 and four columns from 4·(l/4) on, a quarter of a warp each
//   - rows: four columns of one k each, in any order
//
// Where k = j + c and no bit is set in both, swizzle(k) = swizzle(j) ^ swizzle(c). So threads
// keep the place of what they access first, and all others follow by constants, not by
// registers for each.
template <int extent>
DEVICE constexpr int swizzle(int k) {
  return ((k ^ (k >> 2)) & ((extent / 8 < 4 ? extent / 8 : 4) - 1)) * 8;
}

// place is that of column x of row k of a tile.
template <int extent>
DEVICE int place(int k, int x) {
  return k * extent + (x ^ swizzle<extent>(k));
}

// beyond is the place of column x+right of row k+down, where at is that of column x of row k
// and no bit is set in k and down, nor in x and right.
template <int extent>
DEVICE int beyond(int at, int down, int right) {
  return (at ^ swizzle<extent>(down) ^ (right & 31)) + down * extent + (right & ~31);
}

// How threads multiply tiles. Each gives the words that tiles hold, and an Accumulator:
// height×width elements of the result per thread. Its rows and columns come in fours that
// follow each other; the i-th fours of all threads are the i-th part of the tile's rows.
// thread counts within a slice, see product.h; begin says which it is, and the first step of its
// slice. Other steps are given by their distance from it, a multiple of all slices' steps.

// Simt multiplies in the type of the operands, an outer product of height by width
// elements per step and thread.
template <class T>
struct Simt {
  using Real = T;
  using Word = T;
  using Unit = typename Vectors<T>::Unit;
  static constexpr int pack = 1, slice_steps = 1;
  // copies: whether tiles are filled by copies, of an operand that lies along the sum or
  // across it, where the tile of the result has so many elements. Before sm_80 there are none.
  DEVICE static constexpr bool copies(bool, int) { return DAHL_SM >= 80; }
  DEVICE static T word(T x, T) { return x; }

  template <int rows, int columns, int height, int width>
  struct Accumulator {
    static constexpr int across = columns / width, down = rows / height;
    static_assert((height == 4 || down % 8 == 0) && (width == 4 || across % 8 == 0), "parts lie whole groups of banks apart");
    T sum[height][width];
    int thread, a_at, b_at;

    DEVICE int row(int i) const { return (i / 4 * down + thread / across) * 4 + i % 4; }
    DEVICE int column(int j) const { return (j / 4 * across + thread % across) * 4 + j % 4; }
    DEVICE T& at(int i, int j) { return sum[i][j]; }

    DEVICE void begin(int t, int first) {
      thread = t;
      a_at = place<rows>(first, row(0)), b_at = place<columns>(first, column(0));
    }

    // step adds the products of a row of the tiles. What was copied needs no rounding here.
    template <bool, bool>
    DEVICE void step(const T* a, const T* b, int k) {
      using Four = typename Vectors<T>::Four;
      Four x[height / 4], y[width / 4];
      UNROLL for (int i = 0; i < height / 4; i++)
        x[i] = *reinterpret_cast<const Four*>(a + beyond<rows>(a_at, k, i * 4 * down));
      UNROLL for (int j = 0; j < width / 4; j++)
        y[j] = *reinterpret_cast<const Four*>(b + beyond<columns>(b_at, k, j * 4 * across));
      UNROLL for (int i = 0; i < height; i++) {
        UNROLL for (int j = 0; j < width; j++) sum[i][j] = fma(x[i / 4][i % 4], y[j / 4][j % 4], sum[i][j]);
      }
    }
  };
};

#if DAHL_SM >= 80
// Tensor is products of 16×8 by the tensor cores, of float operands that are rounded to
// tf32 (10 bits after the point) or bf16 (7) and summed in float. A warp computes blocks
// of 32×32. Of four consecutive rows, 4g to 4g+3, lane (g,t) reads step t with one load
// of 16 bytes, and they serve as rows g and g+8 of two products; of four consecutive
// columns 4g to 4g+3 each is column g of one of four. Hence what a lane holds of the
// result are rows 4g to 4g+3 and columns 8t to 8t+7 of each block.
template <bool bf16>
struct Tensor {
  using Real = float;
  using Word = uint32_t;
  using Unit = FourWords;
  static constexpr int pack = bf16 ? 2 : 1, slice_steps = 8;
  // Words of bf16 are two steps, which only registers bring together. Copies of an operand
  // along the sum are of single words, four cycles of the way to the first-level cache per
  // warp. That is less than the 6.5 floats per cycle of the second level cost where tiles of the
  // result are small: for 64×64 · 32, 64 copies and 64 reads of fragments are 512 cycles of 630.
  // But for 128×128 · 16, 128 and 96 would be 900 of 630.
  DEVICE static constexpr bool copies(bool along, int results) { return !bf16 && (!along || results <= 64 * 64); }
  DEVICE static Word word(float x, float next) { return bf16 ? round_bf16(x, next) : round_tf32(x); }

  template <int rows, int columns, int height, int width>
  struct Accumulator {
    static constexpr int down = rows / (8 * height);  // warps
    float sum[height / 2][width / 2][4];
    int thread, a_at, b_at;

    DEVICE int row(int i) const { return (i / 4 * down + thread / 32 % down) * 32 + thread % 32 / 4 * 4 + i % 4; }
    DEVICE int column(int j) const { return (thread / 32 / down * (width / 8) + j / 8) * 32 + thread % 4 * 8 + j % 8; }
    DEVICE float& at(int i, int j) { return sum[i / 2][j / 8 * 4 + j % 4][i % 2 * 2 + j % 8 / 4]; }

    DEVICE void begin(int t, int first) {
      thread = t;
      const int near = first + thread % 4, g = thread % 32 / 4 * 4;
      a_at = place<rows>(near, thread / 32 % down * 32 + g);
      b_at = place<columns>(near, thread / 32 / down * (width / 8) * 32 + g);
    }

    // step adds the products of eight rows of the tiles, of which those that were copied are
    // rounded now.
    template <bool a_copied, bool b_copied>
    DEVICE void step(const Word* a, const Word* b, int k) {
      uint32_t x[height / 2][4], y[width / 2][2];
      UNROLL for (int i = 0; i < height / 4; i++) {
        const FourWords v = read<rows, a_copied>(a, a_at, k, 32 * down * i), w = read<rows, a_copied>(a, a_at, k + 4, 32 * down * i);
        UNROLL for (int f = 0; f < 2; f++) {
          x[2 * i + f][0] = v[2 * f], x[2 * i + f][1] = v[2 * f + 1];
          x[2 * i + f][2] = w[2 * f], x[2 * i + f][3] = w[2 * f + 1];
        }
      }
      UNROLL for (int j = 0; j < width / 8; j++) {
        const FourWords v = read<columns, b_copied>(b, b_at, k, 32 * j), w = read<columns, b_copied>(b, b_at, k + 4, 32 * j);
        UNROLL for (int f = 0; f < 4; f++) y[4 * j + f][0] = v[f], y[4 * j + f][1] = w[f];
      }
      UNROLL for (int i = 0; i < height / 2; i++) {
        UNROLL for (int j = 0; j < width / 2; j++) {
          if (bf16)
            mma_bf16(sum[i][j], x[i], y[j]);
          else
            mma_tf32(sum[i][j], x[i], y[j]);
        }
      }
    }

    template <int extent, bool copied>
    DEVICE static FourWords read(const Word* tile, int at, int k, int x) {
      FourWords v = *reinterpret_cast<const FourWords*>(tile + beyond<extent>(at, k, x));
      if (copied) {
        UNROLL for (int f = 0; f < 4; f++) v[f] = round_tf32(from_bits(v[f]));
      }
      return v;
    }
  };
};
#endif

}  // namespace dahl
