// Tiles of a product in shared memory: how they are filled, and how threads multiply them.
#pragma once

#include "product_operand.h"

#if DAHL_DEVICE
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")
#define NO_UNROLL _Pragma("unroll 1")
#else
#define UNROLL
#define UNROLL_BY_4
#define NO_UNROLL
#endif

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

// swizzled is where column x of row k of a tile lies in its row. Rows are a multiple of 32
// words long, so without it one column would lie in one bank. Groups of 8 columns are
// exchanged by k and k/4, so that these accesses of a warp meet 32 different banks:
//   - stores of an operand that lies along k: lane l holds k = 4·(l%4) + i of column l/4
//   - fragments of mma: k = l%4 and four columns from 4·(l/4) on, a quarter of a warp each
//   - rows: four columns of one k each, in any order
template <int extent>
DEVICE int swizzled(int k, int x) {
  constexpr int groups = extent / 8 < 4 ? extent / 8 : 4;
  return x ^ (((k ^ (k >> 2)) & (groups - 1)) * 8);
}

// Feed carries one operand from global to shared memory: depth steps of the sum by
// extent rows (or columns) of the result, by units of 16 bytes along what is contiguous.
// It goes through registers, so that a step's loads are under way while the step before
// is multiplied, and so that what is stored may be transposed, rounded and unpooled.
//
// taps: the index that is summed over is the operand's tap; its pixel counts rows of the
// result. Otherwise the reverse.
template <class Math, class From, bool taps, int extent, int depth, int threads>
struct Feed {
  using T = typename From::T;
  using Word = typename Math::Word;
  using Unit = typename Vectors<T>::Unit;
  static constexpr int pack = Math::pack;         // steps of the sum in a word
  static constexpr int wide = 16 / sizeof(T);     // elements of a unit
  static constexpr bool along = From::last == taps;  // units lie along the sum
  static constexpr int deep = along ? 1 : pack;   // steps that a thread loads for one word
  static constexpr int across = (along ? depth : extent) / wide;  // units side by side
  static constexpr int units = extent * depth / (wide * deep);
  static constexpr int each = (units + threads - 1) / threads;
  static_assert(threads % across == 0, "a thread's units share one index");

  From from;
  Half fixed[along ? each : wide];
  T value[each][deep][wide];

  DEVICE Half outer(int x) const { return taps ? from.pixel(x) : from.tap(x); }
  DEVICE Half inner(int k) const { return taps ? from.tap(k) : from.pixel(k); }
  DEVICE T element(const Half& x, const Half& k) const { return taps ? from.element(x, k) : from.element(k, x); }
  DEVICE Unit load(const Half& x, const Half& k) const {
    return taps ? from.template load<Unit>(x, k) : from.template load<Unit>(k, x);
  }
  DEVICE static int unit(int i) { return int(threadIdx.x) + i * threads; }

  DEVICE Feed(const From& source, int first) : from(source) {
    if (along) {
      UNROLL for (int i = 0; i < each; i++) fixed[i] = outer(first + unit(i) / across);
    } else {
      UNROLL for (int w = 0; w < wide; w++) fixed[w] = outer(first + unit(0) % across * wide + w);
    }
  }

  // fetch starts the loads of the steps from k on.
  DEVICE void fetch(int k) {
    if (along)
      fetch_along(k + unit(0) % across * wide);
    else
      fetch_across(k);
  }

  DEVICE void fetch_along(int k) {
    if (from.o.vector) {
      const Half step = inner(k);
      UNROLL for (int i = 0; i < each; i++) {
        const Unit v = load(fixed[i], step);
        UNROLL for (int w = 0; w < wide; w++) value[i][0][w] = v[w];
      }
      return;
    }
    UNROLL for (int w = 0; w < wide; w++) {
      const Half step = inner(k + w);
      UNROLL for (int i = 0; i < each; i++) value[i][0][w] = element(fixed[i], step);
    }
  }

  DEVICE void fetch_across(int k) {
    UNROLL for (int i = 0; i < each; i++) {
      UNROLL for (int d = 0; d < deep; d++) {
        const Half step = inner(k + unit(i) / across * deep + d);
        if (from.o.vector && fixed[0].row != kOnes) {
          const Unit v = load(fixed[0], step);
          UNROLL for (int w = 0; w < wide; w++) value[i][d][w] = v[w];
        } else {
          UNROLL for (int w = 0; w < wide; w++) value[i][d][w] = element(fixed[w], step);
        }
      }
    }
  }

  // store puts what was fetched into a tile of depth/pack rows of extent words.
  DEVICE void store(Word* tile) const {
    UNROLL for (int i = 0; i < each; i++) {
      if (units % threads != 0 && unit(i) >= units) return;
      if (along) {
        const int k = unit(i) % across * wide / pack, x = unit(i) / across;
        UNROLL for (int w = 0; w < wide / pack; w++)
          tile[(k + w) * extent + swizzled<extent>(k + w, x)] = Math::word(value[i][0][w * pack], value[i][0][w * pack + pack - 1]);
      } else {
        const int k = unit(i) / across, x = unit(i) % across * wide;
        typename Math::Unit v = {};
        UNROLL for (int w = 0; w < wide; w++) v[w] = Math::word(value[i][0][w], value[i][deep - 1][w]);
        *reinterpret_cast<typename Math::Unit*>(tile + k * extent + swizzled<extent>(k, x)) = v;
      }
    }
  }
};

// How threads multiply tiles. Each gives the words that tiles hold, and an Accumulator:
// height×width elements of the result per thread. Its rows and columns come in fours that
// follow each other; the i-th fours of all threads are the i-th part of the tile's rows.
// thread counts within a slice, see product.h.

// Simt multiplies in the type of the operands, an outer product of height by width
// elements per step and thread.
template <class T>
struct Simt {
  using Real = T;
  using Word = T;
  using Unit = typename Vectors<T>::Unit;
  static constexpr int pack = 1, slice_steps = 1;
  DEVICE static T word(T x, T) { return x; }

  template <int rows, int columns, int height, int width>
  struct Accumulator {
    static constexpr int across = columns / width, down = rows / height;
    T sum[height][width];
    int thread;

    DEVICE int row(int i) const { return (i / 4 * down + thread / across) * 4 + i % 4; }
    DEVICE int column(int j) const { return (j / 4 * across + thread % across) * 4 + j % 4; }
    DEVICE T& at(int i, int j) { return sum[i][j]; }

    // step adds the products of row k of the tiles.
    DEVICE void step(const T* a, const T* b, int k) {
      using Four = typename Vectors<T>::Four;
      Four x[height / 4], y[width / 4];
      UNROLL for (int i = 0; i < height / 4; i++)
        x[i] = *reinterpret_cast<const Four*>(a + k * rows + swizzled<rows>(k, row(4 * i)));
      UNROLL for (int j = 0; j < width / 4; j++)
        y[j] = *reinterpret_cast<const Four*>(b + k * columns + swizzled<columns>(k, column(4 * j)));
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
  DEVICE static Word word(float x, float next) { return bf16 ? round_bf16(x, next) : round_tf32(x); }

  template <int rows, int columns, int height, int width>
  struct Accumulator {
    static constexpr int down = rows / (8 * height);  // warps
    float sum[height / 2][width / 2][4];
    int thread;

    DEVICE int row(int i) const { return (i / 4 * down + thread / 32 % down) * 32 + thread % 32 / 4 * 4 + i % 4; }
    DEVICE int column(int j) const { return (thread / 32 / down * (width / 8) + j / 8) * 32 + thread % 4 * 8 + j % 8; }
    DEVICE float& at(int i, int j) { return sum[i / 2][j / 8 * 4 + j % 4][i % 2 * 2 + j % 8 / 4]; }

    // step adds the products of rows k to k+7 of the tiles.
    DEVICE void step(const Word* a, const Word* b, int k) {
      const int near = k + thread % 4, far = near + 4, g = thread % 32 / 4 * 4;
      const int top = thread / 32 % down * 32, left = thread / 32 / down * (width / 8) * 32;
      uint32_t x[height / 2][4], y[width / 2][2];
      UNROLL for (int i = 0; i < height / 4; i++) {
        const FourWords v = read<rows>(a, near, top + 32 * down * i + g), w = read<rows>(a, far, top + 32 * down * i + g);
        UNROLL for (int f = 0; f < 2; f++) {
          x[2 * i + f][0] = v[2 * f], x[2 * i + f][1] = v[2 * f + 1];
          x[2 * i + f][2] = w[2 * f], x[2 * i + f][3] = w[2 * f + 1];
        }
      }
      UNROLL for (int j = 0; j < width / 8; j++) {
        const FourWords v = read<columns>(b, near, left + 32 * j + g), w = read<columns>(b, far, left + 32 * j + g);
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

    template <int extent>
    DEVICE static FourWords read(const Word* tile, int k, int x) {
      return *reinterpret_cast<const FourWords*>(tile + k * extent + swizzled<extent>(k, x));
    }
  };
};
#endif

}  // namespace dahl
