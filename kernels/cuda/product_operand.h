// Operands of the products of product.h, where they lie: matrices, maps of pixels and
// images under a sliding window, so that nothing is gathered into memory first.
//
// Every element of an operand is named by two indices,
//
//	a pixel p = (n·rows + u)·columns + v       and       a tap t = (t0·extent1 + t1)·extent2 + t2
//
// and lies at the sum of what each contributes: n·outer + u·middle + v·inner and
// t0·tap[0] + t1·tap[1] + t2·tap[2]. One index counts rows or columns of the result and
// is decoded once per thread (a `Half` of the address); the other is summed over and is
// decoded once per step of the sum for all elements that share it. The kinds:
//
//	Matrix   row p, column t
//	Map      (n,u,v) from p, channel t: gradients of images, and filters with p = (i,j,c), t = f
//	Window   an image: pixel (n,u,v) and tap (i,j,c) meet at row u·step + i·direction + origin
//	         and the column alike; elements outside the image are 0
//	Unpool   a Map that is known by its pooled form: the sum over the pooling windows
//	         whose maximum lies at (n,u,v); its channels follow each other
#pragma once

#include "division.h"

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

// Operand is mirrored by kernels.productOperand. Strides are in elements and may be negative.
struct Operand {
  uint64_t address;        // of the first element; of an image under a window, its corner
  uint64_t outer;          // strides of the pixel
  int32_t middle, inner;
  int32_t tap[3];          // strides of the tap
  int32_t pixels, taps;    // extents
  Division rows, columns;  // of the pixel
  Division extent1, extent2;  // of the tap
  int32_t step, direction;    // of a window
  int32_t origin_row, origin_column, height, width;
  int32_t ones;    // a tap, after the last, at which all elements are 1; or -1
  int32_t vector;  // whether 16 bytes of taps, from a multiple of them on, lie together and aligned
  int32_t pooled;  // whether pixels come by pooling windows of 2×2: p = 4·window + position
};

// Pooling is mirrored by kernels.productPooling: the positions of maxima, for Unpool.
struct Pooling {
  uint64_t index;  // address of the uint8 map
  uint64_t outer;  // its strides; channels follow each other
  int32_t middle, inner;
  int32_t rows, columns, size;
  Division step;
};

// Half is what one index contributes to an element. Out of range, and at the tap of
// ones, the row is such that no element is inside.
struct Half {
  int64_t at;
  int32_t row, column;
};

constexpr int32_t kOutside = -(1 << 29), kOnes = 1 << 29;

// Marks are the positions of maxima of neighbouring channels, loaded at once.
typedef uint8_t TwoMarks __attribute__((vector_size(2), may_alias));
typedef uint8_t FourMarks __attribute__((vector_size(4), may_alias));
template <int count>
struct Marks {
  using Vector = FourMarks;
};
template <>
struct Marks<2> {
  using Vector = TwoMarks;
};

enum Kind { kMatrix, kMap, kWindow, kUnpool };

// Source reads an operand. Its taps follow each other in memory: channels, or columns of a matrix.
template <class Element, Kind kind>
struct Source {
  using T = Element;
  static constexpr bool unpools = kind == kUnpool;

  const Operand& o;
  const Pooling& pool;

  DEVICE Half pixel(int p) const {
    if (p >= o.pixels) return Half{0, kOutside, 0};
    if (kind == kMatrix) return Half{int64_t(p) * int64_t(o.outer), 0, 0};
    int v, u;
    const int position = p & 3;
    const int n = o.rows.split(o.columns.split(o.pooled ? p >> 2 : p, v), u);
    if (kind == kWindow && o.pooled) {
      u = u * int(pool.step.divisor) + (position >> 1);
      v = v * int(pool.step.divisor) + (position & 1);
    }
    if (kind == kUnpool) return Half{n, u, v};
    const int64_t at = int64_t(n) * int64_t(o.outer);
    if (kind == kMap) return Half{at + int64_t(u) * o.middle + int64_t(v) * o.inner, 0, 0};
    const int row = u * o.step + o.origin_row, column = v * o.step + o.origin_column;
    return Half{at + int64_t(row) * o.middle + int64_t(column) * o.inner, row, column};
  }

  DEVICE Half tap(int t) const {
    if (t >= o.taps) return Half{0, t == o.ones ? kOnes : kOutside, 0};
    if (kind != kWindow) return Half{int64_t(t) * o.tap[0], 0, 0};
    int t1, t2;
    const int t0 = o.extent1.split(o.extent2.split(t, t2), t1);
    const int64_t at = int64_t(t0) * o.tap[0] + int64_t(t1) * o.tap[1] + int64_t(t2) * o.tap[2];
    return Half{at, t0 * o.direction, t1 * o.direction};
  }

  DEVICE bool inside(const Half& p, const Half& t) const {
    if (kind == kWindow)
      return uint32_t(p.row + t.row) < uint32_t(o.height) && uint32_t(p.column + t.column) < uint32_t(o.width);
    if (kind == kUnpool) return p.row >= 0 && t.row == 0;
    return p.row + t.row == 0;
  }

  DEVICE T element(const Half& p, const Half& t) const {
    static_assert(kind != kUnpool, "maps known by their pooled form are loaded by units");
    if (t.row == kOnes) return p.row > kOutside / 2 ? T(1) : T(0);
    return inside(p, t) ? global<const T>(o.address)[p.at + t.at] : T(0);
  }

  // load gives the elements of as many taps from t on as the vector has, which lie together
  // and aligned, as do their marks; of a map known by its pooled form also others.
  template <class Vector>
  DEVICE Vector load(const Half& p, const Half& t) const {
    Vector sum = {};
    if (!inside(p, t)) return sum;
    const T* from = global<const T>(o.address);
    if (kind != kUnpool) return *reinterpret_cast<const Vector*>(from + p.at + t.at);
    const uint8_t* index = global<const uint8_t>(pool.index);
    constexpr int count = sizeof(Vector) / sizeof(T);
    const int channels = o.taps - int(t.at);
    each_window(p, [&](int64_t at, int64_t mark, int position) {
      if (o.vector) {
        const Vector g = *reinterpret_cast<const Vector*>(from + at + t.at);
        const auto marks = *reinterpret_cast<const typename Marks<count>::Vector*>(index + mark + t.at);
        UNROLL for (int i = 0; i < count; i++)
          if (marks[i] == position) sum[i] += g[i];
      } else {
        UNROLL for (int i = 0; i < count; i++)
          if (i < channels && index[mark + t.at + i] == position) sum[i] += from[at + t.at + i];
      }
    });
    return sum;
  }

  // each_window visits the pooling windows that hold a pixel (sample, row, column of which
  // are p): where their gradient and their position lie, and the pixel's position in them.
  template <class Visit>
  DEVICE void each_window(const Half& p, Visit visit) const {
    const int step = int(pool.step.divisor);
    const int first_row = p.row < pool.size ? 0 : pool.step.quotient(p.row - pool.size) + 1;
    const int first_column = p.column < pool.size ? 0 : pool.step.quotient(p.column - pool.size) + 1;
    const int last_row = min(pool.step.quotient(p.row), pool.rows - 1);
    const int last_column = min(pool.step.quotient(p.column), pool.columns - 1);
    for (int u = first_row; u <= last_row; u++)
      for (int v = first_column; v <= last_column; v++)
        visit(p.at * int64_t(o.outer) + int64_t(u) * o.middle + int64_t(v) * o.inner,
              p.at * int64_t(pool.outer) + int64_t(u) * pool.middle + int64_t(v) * pool.inner,
              (p.row - u * step) * pool.size + p.column - v * step);
  }
};

}  // namespace dahl
