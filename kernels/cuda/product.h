// The product behind dense layers and convolutions, c[m,n] = Σ_k a[m,k]·b[k,n] over operands
// where they lie (product_operand.h), with what follows it: bias, ReLU, mask, addition,
// pooling, or the step of gradient descent that the product is the gradient for.
//
// A block computes one tile of the result. Two to four tiles of each operand lie in shared
// memory: while one pair is multiplied, those that follow are under way, into registers or,
// where they are copied as they are, into the slots themselves (product_feed.h). With tiles of 128×64 and 16 steps, 256 threads of 8×4 elements, a step
// reads 8+4 floats per 32 multiplications: 4 wavefronts of shared memory per 8 issue cycles of
// the four schedulers, and 1 float of global memory per 43 multiplications, so an H100 (67
// TF/s, 3.3 TB/s: 40 per float) is kept busy from memory alone, and mostly reads caches.
//
// Few rows, few columns and a long sum (ten classes, the weights of a first convolution)
// give few tiles. Then the sum is cut, twice:
//   - slices: the threads of a block form groups that each take every slices-th step of a
//     tile with all its rows and columns; their sums are added pairwise at the end. So a
//     tile of 16×32 keeps 256 threads, of 4×4 elements each, and not of 1×2, which would
//     read 3 floats per 2 multiplications.
//   - splits: blocks (gridDim.y) take consecutive parts of the sum and leave their sums in
//     the workspace; product_sum adds them and does what follows.
// Both orders depend on extents alone, so a result has the same bits in every run.
#pragma once

#include "product_feed.h"

namespace dahl {

// What follows the sum.
enum After { kStore, kDescend, kPool };

// The tap of ones as a row or a column of the result: the sums of the other operand,
// which are the gradient of the bias.
enum Ones { kNoOnes, kRowOfOnes, kColumnOfOnes };

// ProductParams is mirrored by kernels.productParams. The result c, and the map beside it,
// have pixels and channels as operands do: c[(n,u,v), channel].
struct ProductParams {
  Operand a, b;
  Pooling pool;

  uint64_t c, c_outer;
  uint64_t other, other_outer;  // kStore: where it is ≤ 0 so is c, unless 0; kDescend: velocities; kPool: index
  int32_t c_middle, c_inner, c_channel;
  int32_t other_middle, other_inner, other_channel;
  Division rows, columns;  // of c's pixels

  uint64_t bias, bias_velocity;  // kStore, kPool: added, unless 0; gradient: where the sums of ones go
  uint64_t hyper;                // learning rate, of kDescend
  double momentum, weight_decay;
  int32_t nesterov;

  int32_t after, ones;
  int32_t relu, add, add_bias;  // c and the gradient of the bias may be added to
  int32_t vector;               // kStore without ones: whether four channels of c can be stored at once

  int32_t m, n, k;           // extents, ones included
  int32_t tiles_n;           // tiles side by side
  int32_t steps, splits;     // tiles of the sum per split
  uint64_t partial;          // sums of the splits, m×row each, row = n rounded up to 4
};

// Place is where a row or a column of the result lies, in c and beside it.
struct Place {
  int64_t c, other;
  bool inside, ones;
};

// Follow does what follows the sums. Rows of the result are pixels and columns channels.
template <class T>
struct Follow {
  using Four = typename Vectors<T>::Four;
  const ProductParams& p;

  DEVICE Place pixel(int i) const {
    int v, u;
    const int n = p.rows.split(p.columns.split(i, v), u);
    return Place{int64_t(n) * int64_t(p.c_outer) + int64_t(u) * p.c_middle + int64_t(v) * p.c_inner,
                 int64_t(n) * int64_t(p.other_outer) + int64_t(u) * p.other_middle + int64_t(v) * p.other_inner, true, false};
  }
  DEVICE Place channel(int i) const {
    return Place{int64_t(i) * p.c_channel, int64_t(i) * p.other_channel, true, false};
  }
  DEVICE Place row(int m) const {
    if (m >= p.m) return Place{0, 0, false, false};
    if (p.ones == kRowOfOnes && m == p.m - 1) return Place{0, 0, true, true};
    return pixel(m);
  }
  DEVICE Place column(int n) const {
    if (n >= p.n) return Place{0, 0, false, false};
    if (p.ones == kColumnOfOnes && n == p.n - 1) return Place{0, 0, true, true};
    return channel(n);
  }

  // biased adds the bias of channel n.
  DEVICE T biased(int n, T v) const {
    if (p.bias == 0 || p.ones != kNoOnes) return v;
    return v + global<const T>(p.bias)[n];
  }

  // value is what is stored at a place of c.
  DEVICE T value(int n, const Place& i, const Place& j, T v) const {
    v = biased(n, v);
    if (p.relu && v <= T(0)) v = 0;
    if (p.other != 0 && !(global<const T>(p.other)[i.other + j.other] > T(0))) v = 0;
    if (p.add) v += global<const T>(p.c)[i.c + j.c];
    return v;
  }

  // descend is sgd's step of one element; kernels are compiled without contraction, so each
  // product is rounded before it is added.
  DEVICE void descend(T* w, T* velocity, T g) const {
    const T rate = T(*global<const double>(p.hyper)), momentum = T(p.momentum), decay = T(p.weight_decay);
    if (decay != T(0)) g += decay * *w;
    if (momentum != T(0)) {
      const T v = momentum * *velocity + g;
      *velocity = v;
      g = p.nesterov ? g + momentum * v : v;
    }
    *w -= rate * g;
  }

  // ones takes an element of the row or column of ones: the gradient of bias i.
  DEVICE void ones(int i, T v) const {
    T* to = global<T>(p.bias) + i;
    if (p.after == kDescend)
      descend(to, p.momentum != 0 ? global<T>(p.bias_velocity) + i : to, v);
    else
      *to = p.add_bias ? *to + v : v;
  }

  DEVICE void element(int m, int n, T v) const {
    const Place i = row(m), j = column(n);
    if (!i.inside || !j.inside) return;
    if (i.ones || j.ones) return ones(i.ones ? n : m, v);
    T* to = global<T>(p.c) + i.c + j.c;
    if (p.after == kDescend)
      descend(to, p.momentum != 0 ? global<T>(p.other) + i.other + j.other : to, v);
    else
      *to = value(n, i, j, v);
  }

  // four is element for (m, n) to (m, n+3) where p.vector says that it may be.
  DEVICE void four(int m, int n, Four v) const {
    if (m >= p.m || n >= p.n) return;
    const Place i = row(m);
    UNROLL for (int f = 0; f < 4; f++) v[f] = value(n + f, i, column(n + f), v[f]);
    *reinterpret_cast<Four*>(global<T>(p.c) + i.c + column(n).c) = v;
  }

  // pool takes the four positions of a window of channel n, of which row m is the first; they
  // lie row apart. c gets the positive part of the first maximum, where NaN is the
  // greatest, and other its position.
  DEVICE void pool(int m, int n, const T* v, int row) const {
    if (m >= p.m || n >= p.n) return;
    T most = 0;
    int position = 255;
    UNROLL for (int f = 0; f < 4; f++) {
      const T z = biased(n, v[f * row]);
      if (z > most || (z != z && most == most)) most = z, position = f;
    }
    const Place i = pixel(m >> 2), j = channel(n);
    global<T>(p.c)[i.c + j.c] = most;
    global<uint8_t>(p.other)[i.other + j.other] = uint8_t(position);
  }
};

// product computes tiles of rows×columns elements, depth steps at a time, in slices groups of
// threads of height×width elements each.
constexpr int most_shared = 48 << 10;  // bytes of a block

template <class Math, int rows, int columns, int depth, int height, int width, int slices>
struct Product {
  using T = typename Math::Real;
  using Word = typename Math::Word;
  using Four = typename Vectors<T>::Four;
  using Sums = typename Math::template Accumulator<rows, columns, height, width>;
  static constexpr int group = rows / height * (columns / width);  // threads of a slice
  static constexpr int threads = group * slices;
  static constexpr int words = (rows + columns) * (depth / Math::pack);  // of a pair of tiles
  static constexpr int stride = slices * Math::slice_steps;
  static constexpr int resident = height * width > 32 || (DAHL_SM < 80 && sizeof(T) == 8) ? 1 : 2;  // blocks of a multiprocessor
  static_assert(depth / Math::pack % stride == 0, "slices share the steps of a tile");
  static_assert(slices / 2 * group * height * width * sizeof(T) <= 2 * words * sizeof(Word), "merge fits in the tiles");
  static_assert(rows / (height / 4) * columns * sizeof(T) <= 2 * words * sizeof(Word), "finish fits in the tiles");

  template <class A, bool a_taps, class B, bool b_taps>
  DEVICE static void run(const ProductParams& p) {
    using FeedA = Feed<Math, A, a_taps, rows, depth, threads, rows * columns>;
    using FeedB = Feed<Math, B, b_taps, columns, depth, threads, rows * columns>;
    constexpr bool copied = FeedA::copied || FeedB::copied;
    constexpr int room = most_shared / int(words * sizeof(Word));
    constexpr int slots = !copied ? 2 : room < 4 ? room : 4, lead = slots - 1;
    SHARED(Word, tiles, [slots][words]);
    const int tile = int(blockIdx.x), down = tile / p.tiles_n;
    const int m = down * rows, n = (tile - down * p.tiles_n) * columns;
    const int slice = int(threadIdx.x) / group;
    Sums sums = {};
    sums.begin(int(threadIdx.x) % group, slice * Math::slice_steps);

    const int first = int(blockIdx.y) * p.steps, end = min(first + p.steps, ceil_div(p.k, depth));
    FeedA a(A{p.a, p.pool}, m);
    FeedB b(B{p.b, p.pool}, n);
    int from = 1, to = 0;  // slots of the tiles of step and of those lead steps ahead
    for (int step = first - lead; step < end; step++) {
      const bool ahead = step + lead < end;
      Word *next_a = tiles[to], *next_b = next_a + rows * (depth / Math::pack);
      if (ahead) a.fetch((step + lead) * depth, next_a), b.fetch((step + lead) * depth, next_b);
      if (copied) copy_commit();
      if (step >= first) {
        const Word* pair = tiles[from];
        UNROLL for (int k = 0; k < depth / Math::pack; k += stride)
          sums.template step<FeedA::copied, FeedB::copied>(pair, pair + rows * (depth / Math::pack), k);
      }
      if (ahead) a.store(next_a), b.store(next_b);
      if (copied) copy_wait<lead - 1>();
      // One barrier is enough: who fills the slot that was multiplied from has passed it, hence
      // all have multiplied.
      sync();
      from = from + 1 < slots ? from + 1 : 0, to = to + 1 < slots ? to + 1 : 0;
    }
    T* shared = reinterpret_cast<T*>(&tiles[0][0]);
    merge(shared, slice, sums);
    finish(p, m, n, shared, slice, sums);
  }

  // merge adds the sums of the slices pairwise, those of slice s+half to those of s.
  DEVICE static void merge(T* shared, int slice, Sums& sums) {
    UNROLL for (int half = slices / 2; half > 0; half /= 2) {
      T* mine = shared + slice % half * (group * height * width) + sums.thread;
      if (slice >= half && slice < 2 * half) {
        UNROLL for (int i = 0; i < height * width; i++) mine[i * group] = sums.at(i / width, i % width);
      }
      sync();
      if (slice < half) {
        UNROLL for (int i = 0; i < height * width; i++) sums.at(i / width, i % width) += mine[i * group];
      }
      sync();
    }
  }

  // finish hands the sums on, a part of the tile's rows at a time through shared memory, so
  // that all threads take part and a row's columns are stored by threads that follow each
  // other.
  DEVICE static void finish(const ProductParams& p, int m, int n, T* shared, int slice, Sums& sums) {
    constexpr int part = rows / (height / 4), across = columns / 4;
    const Follow<T> follow{p};
    UNROLL for (int i = 0; i < height; i += 4) {
      if (slice == 0) {
        UNROLL for (int e = i; e < i + 4; e++) {
          UNROLL for (int j = 0; j < width; j += 4)
            fours(shared, sums.row(e) % part, sums.column(j)) = Four{sums.at(e, j), sums.at(e, j + 1), sums.at(e, j + 2), sums.at(e, j + 3)};
        }
      }
      sync();
      const int top = m + i / 4 * part;
      if (p.splits > 1) {
        NO_UNROLL for (int at = int(threadIdx.x); at < part * across; at += threads)
          leave(p, top + at / across, n + at % across * 4, fours(shared, at / across, at % across * 4));
      } else if (p.vector) {
        NO_UNROLL for (int at = int(threadIdx.x); at < part * across; at += threads)
          follow.four(top + at / across, n + at % across * 4, fours(shared, at / across, at % across * 4));
      } else if (p.after == kPool) {
        NO_UNROLL for (int at = int(threadIdx.x); at < part / 4 * columns; at += threads)
          follow.pool(top + at / columns * 4, n + at % columns, shared + at / columns * (4 * columns) + at % columns, columns);
      } else {
        NO_UNROLL for (int at = int(threadIdx.x); at < part * columns; at += threads)
          follow.element(top + at / columns, n + at % columns, shared[at]);
      }
      if (i + 4 < height) sync();
    }
  }

  DEVICE static Four& fours(T* shared, int row, int column) { return *reinterpret_cast<Four*>(shared + row * columns + column); }

  // leave puts sums of a split into the workspace.
  DEVICE static void leave(const ProductParams& p, int m, int n, Four v) {
    if (m >= p.m || n >= p.n) return;
    const int64_t row = (p.n + 3) / 4 * 4;
    *reinterpret_cast<Four*>(global<T>(p.partial) + (int64_t(blockIdx.y) * p.m + m) * row + n) = v;
  }
};

// product_sum adds the sums of the splits and does what follows. A block has 32 columns of
// one row of the result and 8 threads for each: thread y adds splits y, y+8, …, with
// four loads under way, and the eight sums are added in their order.
template <class T>
DEVICE void product_sum(const ProductParams& p) {
  SHARED(T, sums, [8][32]);
  const int x = int(threadIdx.x) % 32, y = int(threadIdx.x) / 32;
  const int m = int(blockIdx.x) / p.tiles_n, n = int(blockIdx.x) % p.tiles_n * 32 + x;
  const int64_t row = (p.n + 3) / 4 * 4;
  const T* from = global<const T>(p.partial) + int64_t(m) * row + n;
  T sum = 0;
  if (n < p.n) {
    UNROLL_BY_4 for (int s = y; s < p.splits; s += 8) sum += from[int64_t(s) * p.m * row];
  }
  sums[y][x] = sum;
  sync();
  if (y != 0 || n >= p.n) return;
  for (int i = 1; i < 8; i++) sum += sums[i][x];
  const Follow<T> follow{p};
  follow.element(m, n, sum);
}

// product_follow does what follows a product that a library has done: its m rows lie in the
// workspace as those of one split. A block has 8 rows and a warp for each, which takes 32
// groups of four neighbouring columns.
template <class T>
DEVICE void product_follow(const ProductParams& p) {
  using Four = typename Vectors<T>::Four;
  const int m = int(blockIdx.x) / p.tiles_n * 8 + int(threadIdx.x) / 32;
  const int n = (int(blockIdx.x) % p.tiles_n * 32 + int(threadIdx.x) % 32) * 4;
  if (m >= p.m || n >= p.n) return;
  const int64_t row = (p.n + 3) / 4 * 4;
  const Four v = *reinterpret_cast<const Four*>(global<const T>(p.partial) + m * row + n);
  const Follow<T> follow{p};
  if (p.vector) return follow.four(m, n, v);
  UNROLL for (int f = 0; f < 4; f++) follow.element(m, n + f, v[f]);
}

}  // namespace dahl
