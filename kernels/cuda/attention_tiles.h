// Attention by tiles of queries against tiles of keys (Dao, "FlashAttention-2", 2023, arXiv:2307.08691), of float32. A block has a tile of queries, or of
// keys of the gradient of keys and values, and the others come by, see attention_tile.h. Tiles of those that come by begin at multiples
// of their extent, so that a sum is of the same parts wherever the tiles of the block begin.
#pragma once

#include "attention_tile.h"

#if DAHL_SM >= 80
namespace dahl {

constexpr float kNone = -__builtin_huge_valf();

// Rows is what a warp has of a block's tile: lanes have positions row(0) and row(1) of a head.
template <class S>
struct Rows {
  Task of;    // its position is the first one of the block
  int first;  // of the warp, in the tile

  DEVICE Rows(int heads, int positions) : of(task_of(int32_t(blockIdx.x), heads, (positions + S::rows - 1) / S::rows)), first(int(threadIdx.x) / 32 * 16) {
    of.position *= S::rows;
  }

  DEVICE int begin() const { return of.position + first; }
  DEVICE int row(int i) const { return begin() + lane() / 4 + 8 * i; }
  // in is where the warp's rows of an operand in shared memory begin.
  DEVICE const float* in(const float* tile) const { return tile + first * S::pitch; }
};

// column_in is the position of element e of block j of a lane.
DEVICE int column_in(int column, int j, int e) { return column + 8 * j + column_of(lane() % 4, e % 2); }

DEVICE bool sees(const AttentionParams& p, int sample, int query, int key) {
  const int i = key - query + p.past;
  return query < p.queries && key < p.keys && i >= 0 && i < p.window && !is_hidden(p.m, sample, key);
}

// meet is whether some of so many queries and keys may see each other.
DEVICE bool meet(const AttentionParams& p, int query, int queries, int key, int keys) {
  const int i = key - query + p.past;
  return query < p.queries && key < p.keys && i + keys > 0 && i - queries < p.window - 1;
}

// each is a number of two rows. One lane of four reads it, since it may change it afterwards.
template <class S>
DEVICE void each(float (&to)[2], const Rows<S>& rows, const AttentionParams& p, const ByQuery& from, bool there) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const bool reads = there && rows.row(i) < p.queries && lane() % 4 == 0;
    to[i] = shuffle(reads ? by_query<const float>(from, rows.of.sample, rows.of.head, rows.row(i)) : kNone, lane() / 4 * 4);
  }
}

// put writes the sums of a tile times a factor of each row, or adds them to what was there.
template <class S>
DEVICE void put(const Rows<S>& rows, const AttentionParams& p, const Features& to, int positions, bool adds, const float (&by)[2], const typename S::Sums& sums) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (rows.row(i) >= positions) continue;
    float* y = features<float>(p, to, rows.of.sample, rows.row(i), rows.of.head) + lane() % 4 * 2;
#pragma unroll
    for (int j = 0; j < S::features / 8; j++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (8 * j + lane() % 4 * 2 + e < p.width) y[8 * j + e] = adds ? y[8 * j + e] + by[i] * sums[j][2 * i + e] : by[i] * sums[j][2 * i + e];
  }
}

// get_earlier reads the features of earlier keys, of the rows that have seen some.
template <class S>
DEVICE void get_earlier(typename S::Sums& to, const Rows<S>& rows, const AttentionParams& p, const float (&before)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (!(before[i] > kNone)) continue;
    const float* y = features<const float>(p, p.y, rows.of.sample, rows.row(i), rows.of.head) + lane() % 4 * 2;
#pragma unroll
    for (int j = 0; j < S::features / 8; j++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (8 * j + lane() % 4 * 2 + e < p.width) to[j][2 * i + e] = y[8 * j + e];
  }
}

// of_queries are the keys that come by for a tile of queries.
template <class S>
DEVICE Stream<S> of_queries(const Rows<S>& rows, const AttentionParams& p, float* stages) {
  const int last = min(rows.of.position + S::rows, p.queries) - 1;
  return Stream<S>(p, p.k, p.v, Task{rows.of.sample, rows.of.head / p.group, 0}, 1, max(0, rows.of.position - p.past), min(p.keys, last - p.past + p.window), p.keys, stages);
}

// weigh turns the scores of a tile into weights by the greatest ones so far, and gives by how much earlier weights count.
template <class S>
DEVICE void weigh(typename S::Scores& s, float (&most)[2], float (&all)[2], float (&less)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float m = most[i];
#pragma unroll
    for (int j = 0; j < S::blocks; j++) m = max(m, max(s[j][2 * i], s[j][2 * i + 1]));
    m = max(m, shuffle_xor(m, 1));
    m = max(m, shuffle_xor(m, 2));
    const float by = m > kNone ? m : 0.f;
    less[i] = exp(most[i] - by);
    most[i] = m;
    all[i] *= less[i];
#pragma unroll
    for (int j = 0; j < S::blocks; j++)
#pragma unroll
      for (int e = 2 * i; e < 2 * i + 2; e++) all[i] += s[j][e] = exp(s[j][e] - by);
  }
}

template <class S, class Products>
DEVICE void attention(const AttentionParams& p) {
  DYNAMIC_SHARED(float, shared);
  const Rows<S> rows(p.heads * p.group, p.queries);
  start_copy<S, S::rows>(shared, p, p.q, rows.of, rows.of.position, p.queries);
  Stream<S> keys = of_queries<S>(rows, p, shared + S::own);
  float most[2], all[2], less[2];  // all is what falls to the lane
  typename S::Sums y = {};
  each<S>(most, rows, p, p.l, p.adds);
  get_earlier<S>(y, rows, p, most);
#pragma unroll
  for (int i = 0; i < 2; i++) all[i] = most[i] > kNone && lane() % 4 == 0 ? 1.f : 0.f;
  for (int step = 0; step < keys.steps; step++) {
    const float* tile = keys.next(step);
    if (!meet(p, rows.begin(), 16, keys.column(step), S::columns)) continue;
    typename S::Scores s = {};
    Products::template along<S>(s, rows.in(shared), tile);
#pragma unroll
    for (int j = 0; j < S::blocks; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        s[j][e] = sees(p, rows.of.sample, rows.row(e / 2), column_in(keys.column(step), j, e)) ? float(p.scale) * s[j][e] : kNone;
    weigh<S>(s, most, all, less);
#pragma unroll
    for (int j = 0; j < S::features / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) y[j][e] *= less[e / 2];
    Products::template across<S>(y, s, tile + S::stage);
  }
  float by[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    all[i] += shuffle_xor(all[i], 1);
    all[i] += shuffle_xor(all[i], 2);
    by[i] = all[i] > 0.f ? 1.f / all[i] : 0.f;
    if (rows.row(i) < p.queries && lane() % 4 == 0)
      by_query<float>(p.l, rows.of.sample, rows.of.head, rows.row(i)) = all[i] > 0.f ? most[i] + log(all[i]) : kNone;
  }
  put<S>(rows, p, p.y, p.queries, false, by, y);
}

template <class S, class Products>
DEVICE void attention_dq(const AttentionParams& p) {
  DYNAMIC_SHARED(float, shared);
  const Rows<S> rows(p.heads * p.group, p.queries);
  start_copy<S, S::rows>(shared, p, p.q, rows.of, rows.of.position, p.queries);
  start_copy<S, S::rows>(shared + S::own, p, p.dy, rows.of, rows.of.position, p.queries);
  Stream<S> keys = of_queries<S>(rows, p, shared + 2 * S::own);
  float l[2], r[2];
  each<S>(l, rows, p, p.l, true);
  each<S>(r, rows, p, p.r, true);
  typename S::Sums dq = {};
  const float scale = float(p.scale);
  for (int step = 0; step < keys.steps; step++) {
    const float* tile = keys.next(step);
    if (!meet(p, rows.begin(), 16, keys.column(step), S::columns)) continue;
    typename S::Scores s = {}, dp = {};
    Products::template along<S>(s, rows.in(shared), tile);
    Products::template along<S>(dp, rows.in(shared + S::own), tile + S::stage);
#pragma unroll
    for (int j = 0; j < S::blocks; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const bool there = sees(p, rows.of.sample, rows.row(e / 2), column_in(keys.column(step), j, e));
        s[j][e] = there ? exp(scale * s[j][e] - l[e / 2]) * (dp[j][e] - r[e / 2]) : 0.f;
      }
    Products::template across<S>(dq, s, tile);
  }
  put<S>(rows, p, p.dk, p.queries, p.adds, {scale, scale}, dq);
}

template <class S, class Products>
DEVICE void attention_dkv(const AttentionParams& p) {
  DYNAMIC_SHARED(float, shared);
  const Rows<S> rows(p.heads, p.keys);
  start_copy<S, S::rows>(shared, p, p.k, rows.of, rows.of.position, p.keys);
  start_copy<S, S::rows>(shared + S::own, p, p.v, rows.of, rows.of.position, p.keys);
  const int last = min(rows.of.position + S::rows, p.keys) - 1;
  Stream<S> queries(p, p.q, p.dy, Task{rows.of.sample, rows.of.head * p.group, 0}, p.group, max(0, rows.of.position + p.past - p.window + 1),
                    min(p.queries, last + p.past + 1), p.queries, shared + 2 * S::own);
  typename S::Sums dk = {}, dv = {};
  const float scale = float(p.scale);
  for (int step = 0; step < queries.steps; step++) {
    const float* tile = queries.next(step);
    if (!meet(p, queries.column(step), S::columns, rows.begin(), 16)) continue;
    const int head = queries.head(step);
    typename S::Scores s = {}, dp = {};
    Products::template along<S>(s, rows.in(shared), tile);
    Products::template along<S>(dp, rows.in(shared + S::own), tile + S::stage);
#pragma unroll
    for (int j = 0; j < S::blocks; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int query = column_in(queries.column(step), j, e);
        const bool there = sees(p, rows.of.sample, query, rows.row(e / 2));
        s[j][e] = there ? exp(scale * s[j][e] - by_query<const float>(p.l, rows.of.sample, head, query)) : 0.f;
        dp[j][e] = there ? s[j][e] * (dp[j][e] - by_query<const float>(p.r, rows.of.sample, head, query)) : 0.f;
      }
    Products::template across<S>(dv, s, tile + S::stage);
    Products::template across<S>(dk, dp, tile);
  }
  put<S>(rows, p, p.dk, p.keys, p.adds, {scale, scale}, dk);
  put<S>(rows, p, p.dv, p.keys, p.adds_second, {1.f, 1.f}, dv);
}

// ATTENTION is the kernels for heads of so many features.
#define ATTENTION(name, Products, features)                                                                                                    \
  ENTRY(attention_##name##_##features##_f32, AttentionParams, Shape<features>::threads, 3) { attention<Shape<features>, Products>(p); }         \
  ENTRY(attention_dq_##name##_##features##_f32, AttentionParams, Shape<features>::threads, 2) { attention_dq<Shape<features>, Products>(p); }   \
  ENTRY(attention_dkv_##name##_##features##_f32, AttentionParams, Shape<features>::threads, 2) { attention_dkv<Shape<features>, Products>(p); }

}  // namespace dahl
#endif
