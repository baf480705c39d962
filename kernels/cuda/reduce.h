// Trees over what the threads of a team hold: the 32 lanes of a warp, or all threads of a
// block. Their order depends on the team's size alone, so sums have the same bits in every
// run. Every thread gets the result.
#pragma once

#include "device.h"

namespace dahl {

// combine_warp folds f over the lanes of a warp, in pairs, then pairs of pairs. f must be
// commutative, so that both sides of a pair come to the same.
template <class V, class F>
DEVICE V combine_warp(V v, F f) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) v = f(v, shuffle_xor(v, distance));
  return v;
}

// combine is the same over a team of `threads`. A block's warps leave theirs in shared
// memory, and every warp folds them; none is the neutral element.
template <int threads, class V, class F>
DEVICE V combine(V v, V none, F f) {
  v = combine_warp(v, f);
  if constexpr (threads > 32) {
    SHARED(V, partial, [threads / 32]);
    if (lane() == 0) partial[threadIdx.x / 32] = v;
    sync();
    v = none;
    if (lane() < threads / 32) v = partial[lane()];
    v = combine_warp(v, f);
    sync();  // before the next tree writes
  }
  return v;
}

template <int threads, class T>
DEVICE T sum(T v) {
  return combine<threads>(v, T(0), [](T a, T b) { return a + b; });
}

// Best is a value and where it is; where < 0: none.
template <class T>
struct Best {
  T value;
  int32_t where;
};

template <class T>
DEVICE Best<T> shuffle_xor(Best<T> b, int mask) {
  return {shuffle_xor(b.value, mask), shuffle_xor(b.where, mask)};
}

// better is the greater one, of equals the first; NaN wins.
template <class T>
DEVICE Best<T> better(Best<T> a, Best<T> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool equal = a.value == b.value || (a_nan && b_nan);
  const bool wins = equal ? a.where < b.where : a_nan || (!b_nan && a.value > b.value);
  const bool a_it_is = b.where < 0 || (a.where >= 0 && wins);
  return {a_it_is ? a.value : b.value, a_it_is ? a.where : b.where};  // in registers
}

template <int threads, class T>
DEVICE Best<T> best(Best<T> b) {
  return combine<threads>(b, Best<T>{0, -1}, [](Best<T> x, Best<T> y) { return better(x, y); });
}

}  // namespace dahl
