// How tiles of a product are filled: by loads through registers, or by copies that need none
// and of which several tiles can be under way.
#pragma once

#include "product_tile.h"

namespace dahl {

// Loads carries one operand from global to shared memory: depth steps of the sum by
// extent rows (or columns) of the result, by units of 16 bytes along what is contiguous.
// It goes through registers, so that a step's loads are under way while the step before
// is multiplied, and so that what is stored may be transposed, rounded and unpooled.
//
// taps: the index that is summed over is the operand's tap; its pixel counts rows of the
// result. Otherwise the reverse.
template <class Math, class From, bool taps, int extent, int depth, int threads>
struct Loads {
  static constexpr bool copied = false;
  using T = typename From::T;
  using Word = typename Math::Word;
  using Unit = typename Vectors<T>::Unit;
  static constexpr int pack = Math::pack;         // steps of the sum in a word
  static constexpr int wide = 16 / sizeof(T);     // elements of a unit
  static constexpr bool along = taps;  // units lie along the sum
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
  DEVICE T element(const Half& x, const Half& k) const {
    return taps ? from.element(x, k) : from.element(k, x);
  }
  DEVICE Unit load(const Half& x, const Half& k) const {
    return taps ? from.template load<Unit>(x, k) : from.template load<Unit>(k, x);
  }
  DEVICE static int unit(int i) { return int(threadIdx.x) + i * threads; }

  DEVICE Loads(const From& source, int first) : from(source) {
    if (along) {
      UNROLL for (int i = 0; i < each; i++) fixed[i] = outer(first + unit(i) / across);
    } else {
      UNROLL for (int w = 0; w < wide; w++) fixed[w] = outer(first + unit(0) % across * wide + w);
    }
  }

  // fetch starts the loads of the steps from k on, for a tile that store puts them into.
  DEVICE void fetch(int k, Word*) {
    if constexpr (along)
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
        if (From::unpools || (from.o.vector && fixed[0].row != kOnes)) {
          const Unit v = load(fixed[0], step);
          UNROLL for (int w = 0; w < wide; w++) value[i][d][w] = v[w];
        } else if constexpr (!From::unpools) {
          UNROLL for (int w = 0; w < wide; w++) value[i][d][w] = element(fixed[w], step);
        }
      }
    }
  }

  // store puts what was fetched into a tile of depth/pack rows of extent words.
  DEVICE void store(Word* tile) const {
    constexpr int next = threads / across;  // the distance of a thread's units
    const int along_k = unit(0) % across * wide / pack, x = unit(0) % across * wide;
    const int at = along ? place<extent>(along_k, unit(0) / across) : place<extent>(unit(0) / across, x);
    UNROLL for (int i = 0; i < each; i++) {
      if (units % threads != 0 && unit(i) >= units) return;
      if (along) {
        UNROLL for (int w = 0; w < wide / pack; w++)
          tile[beyond<extent>(at, w, i * next)] = Math::word(value[i][0][w * pack], value[i][0][w * pack + pack - 1]);
      } else {
        typename Math::Unit v = {};
        UNROLL for (int w = 0; w < wide; w++) v[w] = Math::word(value[i][0][w], value[i][deep - 1][w]);
        *reinterpret_cast<typename Math::Unit*>(tile + beyond<extent>(at, i * next, 0)) = v;
      }
    }
  }
};

// Copies carries it from global to shared memory by copies that the threads only start
// (cp.async), so tiles are on their way while others are multiplied, without registers. What
// is copied cannot be rounded or unpooled. Units of 16 bytes lie across the sum as in the
// tile; of an operand along the sum each element is copied to its place, by lanes that hold 8
// steps of 4 columns: whole sectors of 32 bytes, and two accesses to a bank at most.
template <class Math, class From, bool taps, int extent, int depth, int threads>
struct Copies {
  static constexpr bool copied = true;
  using T = typename From::T;
  using Word = typename Math::Word;
  static_assert(sizeof(T) == sizeof(Word), "copies change nothing");
  static constexpr bool along = taps;
  static constexpr int wide = 16 / sizeof(T);
  static constexpr int across = along ? 8 : extent / wide;  // threads side by side
  static constexpr int next = threads / across;             // the distance of a thread's rows
  static constexpr int each = ((along ? extent : depth) + next - 1) / next;

  From from;
  Half fixed[along ? each : wide];

  DEVICE Half outer(int x) const { return taps ? from.pixel(x) : from.tap(x); }
  DEVICE Half inner(int k) const { return taps ? from.tap(k) : from.pixel(k); }
  DEVICE static int side() { return int(threadIdx.x) % across; }
  DEVICE static int down() { return int(threadIdx.x) / across; }

  DEVICE Copies(const From& source, int first) : from(source) {
    UNROLL for (int i = 0; i < (along ? each : wide); i++)
      fixed[i] = outer(first + (along ? down() + i * next : side() * wide + i));
  }

  // fetch starts the copies of the steps from k on.
  DEVICE void fetch(int k, Word* words) {
    T* tile = reinterpret_cast<T*>(words);
    if constexpr (along)
      fetch_along(k, tile);
    else
      fetch_across(k, tile);
  }

  DEVICE void fetch_along(int k, T* tile) {
    const int at = place<extent>(side(), down());
    UNROLL for (int j = 0; j < depth; j += 8) {
      const Half step = inner(k + side() + j);
      UNROLL for (int i = 0; i < each; i++)
        if (extent % next == 0 || down() + i * next < extent) element(tile + beyond<extent>(at, j, i * next), fixed[i], step);
    }
  }

  DEVICE void fetch_across(int k, T* tile) {
    const int at = place<extent>(down(), side() * wide);
    UNROLL for (int i = 0; i < each; i++) {
      if (depth % next != 0 && down() + i * next >= depth) return;
      const Half step = inner(k + down() + i * next);
      T* to = tile + beyond<extent>(at, i * next, 0);
      if (from.o.vector && fixed[0].row != kOnes) {
        copy<16>(to, fixed[0], step);
      } else {
        UNROLL for (int w = 0; w < wide; w++) element(to + w, fixed[w], step);
      }
    }
  }

  DEVICE void element(T* to, const Half& x, const Half& k) const {
    const Half &p = taps ? x : k, &t = taps ? k : x;
    if (t.row == kOnes)
      *to = from.element(p, t);
    else
      copy<sizeof(T)>(to, x, k);
  }

  template <int bytes>
  DEVICE void copy(T* to, const Half& x, const Half& k) const {
    copy_async<bytes>(to, global<const T>(from.o.address) + x.at + k.at, (taps ? from.inside(x, k) : from.inside(k, x)) ? bytes : 0);
  }

  DEVICE void store(Word*) const {}
};

// Feed is one of them, for tiles of a result of so many elements.
template <bool copies, class Math, class From, bool taps, int extent, int depth, int threads>
struct FeedOf {
  using Type = Loads<Math, From, taps, extent, depth, threads>;
};
template <class Math, class From, bool taps, int extent, int depth, int threads>
struct FeedOf<true, Math, From, taps, extent, depth, threads> {
  using Type = Copies<Math, From, taps, extent, depth, threads>;
};
template <class Math, class From, bool taps, int extent, int depth, int threads, int results>
using Feed = typename FeedOf<!From::unpools && Math::copies(taps, results), Math, From, taps, extent, depth, threads>::Type;

}  // namespace dahl
