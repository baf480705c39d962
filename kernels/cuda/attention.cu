// Attention and rotary positions. A warp has a query, or a key of the gradient of keys and values, and its lanes have the
// features in turn, at most kChunk of the result at a time. Weights of keys are computed again for each chunk. The softmax
// runs along the keys with the greatest score so far, so that no scores are kept.
#include "attention.h"
#include "philox.h"
#include "reduce.h"

namespace dahl {

constexpr int kLanes = 32, kParts = 8, kChunk = kLanes * kParts;

// task_of_warp is the position of a head that a warp has.
DEVICE Task task_of_warp(int32_t heads, int32_t positions) {
  return task_of(int32_t(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32), heads, positions);
}

DEVICE bool is_beyond(const AttentionParams& p) { return int32_t(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) >= p.total; }

// times_of is how many times the weight of a key counts for a query.
template <class T>
DEVICE T times_of(const AttentionParams& p, int32_t sample, int32_t head, int32_t query, int32_t key) {
  if (!p.rows.first) return T(1);
  const uint32_t i = uint32_t(key - query + p.past);
  const Words words = philox(uint64_t(by_query<const int64_t>(p.rows, sample, head, query)), {{i / 4, 0, 0, 0}});
  return uint64_t(words.at(i % 4)) >= p.least ? T(p.times) : T(0);
}

template <class T>
DEVICE T dot(const T* a, const T* b, int32_t width) {
  T s = 0;
  for (int32_t d = lane(); d < width; d += kLanes) s += a[d] * b[d];
  return sum<kLanes>(s);
}

// read_once is a number for all lanes. The first lane reads it, since it changes the number afterwards.
template <class T>
DEVICE T read_once(const T& at) {
  return shuffle(lane() == 0 ? at : T(0), 0);
}

// add_chunk adds a multiple of the features from first on that fall to the lane.
template <class T>
DEVICE void add_chunk(T (&to)[kParts], T by, const T* of, int32_t first, int32_t width) {
#pragma unroll
  for (int i = 0; i < kParts; i++) {
    const int32_t d = first + i * kLanes + lane();
    if (d < width) to[i] += by * of[d];
  }
}

template <class T>
DEVICE void put_chunk(T* to, bool adds, T by, const T (&of)[kParts], int32_t first, int32_t width) {
#pragma unroll
  for (int i = 0; i < kParts; i++) {
    const int32_t d = first + i * kLanes + lane();
    if (d < width) to[d] = adds ? to[d] + by * of[i] : by * of[i];
  }
}

template <class T>
DEVICE void attention(const AttentionParams& p) {
  if (is_beyond(p)) return;  // with all its warp
  const Task t = task_of_warp(p.heads * p.group, p.queries);
  const int32_t lo = max(0, t.position - p.past), hi = min(p.keys, t.position - p.past + p.window), head = t.head / p.group;
  const T *q = features<const T>(p, p.q, t.sample, t.position, t.head), scale = T(p.scale);
  T *y = features<T>(p, p.y, t.sample, t.position, t.head), &l = by_query<T>(p.l, t.sample, t.head, t.position);
  const T none = -T(__builtin_huge_valf()), before = p.adds ? read_once(l) : none;
  T most = before, all = 0;
  for (int32_t first = 0; first < p.width; first += kChunk) {
    T mix[kParts] = {};
    if (most = before, all = 0; before > none) {
      all = 1;
      add_chunk(mix, T(1), y, first, p.width);
    }
    for (int32_t s = lo; s < hi; s++) {
      if (is_hidden(p.m, t.sample, s)) continue;
      const T a = scale * dot(q, features<const T>(p, p.k, t.sample, s, head), p.width);
      if (a > most) {
        const T less = all > 0 ? exp(most - a) : T(0);
        all *= less;
#pragma unroll
        for (int i = 0; i < kParts; i++) mix[i] *= less;
        most = a;
      }
      const T e = exp(a - most);
      all += e;
      add_chunk(mix, e * times_of<T>(p, t.sample, t.head, t.position, s), features<const T>(p, p.v, t.sample, s, head), first, p.width);
    }
    put_chunk(y, false, all > 0 ? T(1) / all : T(0), mix, first, p.width);
  }
  if (lane() == 0) l = all > 0 ? most + log(all) : none;
}

ENTRY(attention_f32, AttentionParams, 128, 4) { attention<float>(p); }
ENTRY(attention_f64, AttentionParams, 128, 4) { attention<double>(p); }

template <class T>
DEVICE void attention_dq(const AttentionParams& p) {
  if (is_beyond(p)) return;
  const Task t = task_of_warp(p.heads * p.group, p.queries);
  const int32_t lo = max(0, t.position - p.past), hi = min(p.keys, t.position - p.past + p.window), head = t.head / p.group;
  const T *q = features<const T>(p, p.q, t.sample, t.position, t.head), *dy = features<const T>(p, p.dy, t.sample, t.position, t.head);
  const T scale = T(p.scale), l = by_query<const T>(p.l, t.sample, t.head, t.position);
  const T along = by_query<const T>(p.r, t.sample, t.head, t.position);
  for (int32_t first = 0; first < p.width; first += kChunk) {
    T mix[kParts] = {};
    for (int32_t s = lo; s < hi; s++) {
      if (is_hidden(p.m, t.sample, s)) continue;
      const T* k = features<const T>(p, p.k, t.sample, s, head);
      const T weight = exp(scale * dot(q, k, p.width) - l);
      const T times = times_of<T>(p, t.sample, t.head, t.position, s);
      add_chunk(mix, weight * (times * dot(dy, features<const T>(p, p.v, t.sample, s, head), p.width) - along), k, first, p.width);
    }
    put_chunk(features<T>(p, p.dk, t.sample, t.position, t.head), p.adds, scale, mix, first, p.width);
  }
}

ENTRY(attention_dq_f32, AttentionParams, 128) { attention_dq<float>(p); }
ENTRY(attention_dq_f64, AttentionParams, 128) { attention_dq<double>(p); }

template <class T>
DEVICE void attention_dkv(const AttentionParams& p) {
  if (is_beyond(p)) return;
  const Task t = task_of_warp(p.heads, p.keys);
  const int32_t lo = max(0, t.position + p.past - p.window + 1);
  const int32_t hi = is_hidden(p.m, t.sample, t.position) ? lo : min(p.queries, t.position + p.past + 1);
  const T *k = features<const T>(p, p.k, t.sample, t.position, t.head), *v = features<const T>(p, p.v, t.sample, t.position, t.head);
  const T scale = T(p.scale);
  for (int32_t first = 0; first < p.width; first += kChunk) {
    T keys[kParts] = {}, values[kParts] = {};
    for (int32_t g = t.head * p.group; g < (t.head + 1) * p.group; g++)
      for (int32_t i = lo; i < hi; i++) {
        const T *q = features<const T>(p, p.q, t.sample, i, g), *dy = features<const T>(p, p.dy, t.sample, i, g);
        const T weight = exp(scale * dot(q, k, p.width) - by_query<const T>(p.l, t.sample, g, i));
        const T times = times_of<T>(p, t.sample, g, i, t.position);
        add_chunk(keys, weight * (times * dot(dy, v, p.width) - by_query<const T>(p.r, t.sample, g, i)), q, first, p.width);
        add_chunk(values, weight * times, dy, first, p.width);
      }
    put_chunk(features<T>(p, p.dk, t.sample, t.position, t.head), p.adds, scale, keys, first, p.width);
    put_chunk(features<T>(p, p.dv, t.sample, t.position, t.head), p.adds_second, T(1), values, first, p.width);
  }
}

ENTRY(attention_dkv_f32, AttentionParams, 128) { attention_dkv<float>(p); }
ENTRY(attention_dkv_f64, AttentionParams, 128) { attention_dkv<double>(p); }

template <class T>
DEVICE void attention_along(const AttentionParams& p) {
  if (is_beyond(p)) return;
  const Task t = task_of_warp(p.heads, p.queries);
  const T r = dot(features<const T>(p, p.dy, t.sample, t.position, t.head), features<const T>(p, p.y, t.sample, t.position, t.head), p.width);
  if (lane() == 0) by_query<T>(p.r, t.sample, t.head, t.position) = r;
}

ENTRY(attention_along_f32, AttentionParams, 128) { attention_along<float>(p); }
ENTRY(attention_along_f64, AttentionParams, 128) { attention_along<double>(p); }

// In attention.merge dy and r are the other features and logarithms.
template <class T>
DEVICE void attention_merge(const AttentionParams& p) {
  if (is_beyond(p)) return;
  const Task t = task_of_warp(p.heads, p.queries);
  T *y = features<T>(p, p.y, t.sample, t.position, t.head), &l = by_query<T>(p.l, t.sample, t.head, t.position);
  const T mine = read_once(l), others = by_query<const T>(p.r, t.sample, t.head, t.position), most = mine > others ? mine : others;
  if (most == -T(__builtin_huge_valf())) return;
  const T a = exp(mine - most), b = exp(others - most);
  const T* other = features<const T>(p, p.dy, t.sample, t.position, t.head);
  for (int32_t d = lane(); d < p.width; d += kLanes) y[d] = a / (a + b) * y[d] + b / (a + b) * other[d];
  if (lane() == 0) l = most + log(a + b);
}

ENTRY(attention_merge_f32, AttentionParams, 128) { attention_merge<float>(p); }
ENTRY(attention_merge_f64, AttentionParams, 128) { attention_merge<double>(p); }

// RotaryParams is mirrored by gpu.rotaryParams. In rotary.table y is the table.
struct RotaryParams {
  Features y, x;
  uint64_t table;
  int64_t table_row;
  double base;
  int32_t positions, heads, half, back;
  int32_t total;  // pairs
};

template <class T>
DEVICE void rotary(const RotaryParams& p) {
  const int32_t pair = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
  if (pair >= p.total) return;
  const int32_t i = pair % p.half, h = pair / p.half % p.heads, row = pair / (p.half * p.heads), t = row % p.positions, n = row / p.positions;
  const int64_t at = int64_t(h) * 2 * p.half + i;
  const T* table = global<const T>(p.table) + p.table_row * t;
  const T cos = table[i], sin = p.back ? -table[p.half + i] : table[p.half + i];
  const T* x = global<const T>(p.x.first) + (p.x.sample * n + p.x.position * t + at);
  T* y = global<T>(p.y.first) + (p.y.sample * n + p.y.position * t + at);
  const T a = x[0], b = x[p.half];
  y[0] = a * cos - b * sin;
  y[p.half] = b * cos + a * sin;
}

ENTRY(rotary_f32, RotaryParams, 256) { rotary<float>(p); }
ENTRY(rotary_f64, RotaryParams, 256) { rotary<double>(p); }

template <class T>
DEVICE void rotary_table(const RotaryParams& p) {
  const int32_t pair = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
  if (pair >= p.total) return;
  const int32_t i = pair % p.half, t = pair / p.half;
  const Turn turn = turn_by(double(t) * exp(-double(i) / double(p.half) * log(p.base)));
  T* row = global<T>(p.table) + p.table_row * t;
  row[i] = T(turn.cos);
  row[p.half + i] = T(turn.sin);
}

ENTRY(rotary_table_f32, RotaryParams, 256) { rotary_table<float>(p); }
ENTRY(rotary_table_f64, RotaryParams, 256) { rotary_table<double>(p); }

}  // namespace dahl
