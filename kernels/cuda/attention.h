// The parameter of attention's kernels, and what it says of their operands.
#pragma once

#include "device.h"

namespace dahl {

// Features is an operand of samples, positions and features of heads. It is mirrored by gpu.featuresParams.
struct Features {
  uint64_t first;
  int64_t sample, position;
};

// ByQuery is an operand of samples, heads of queries and queries. It is mirrored by gpu.byQueryParams.
struct ByQuery {
  uint64_t first;
  int64_t sample, head;
};

// ByKey is an operand of a number for each key of a sample, or of none. It is mirrored by gpu.byKeyParams.
struct ByKey {
  uint64_t first;
  int64_t sample;
};

// AttentionParams is mirrored by gpu.attentionParams. What an operation does not have is 0.
struct AttentionParams {
  Features q, k, v, y, dy, dk, dv;  // y is that of the forward pass, or dq is dk
  ByQuery l, r;
  ByKey m;  // 0 where no query sees a key
  ByQuery rows;  // keys of draws; 0 where no weight is dropped
  double scale;
  double times;    // a weight that stays counts
  uint64_t least;  // word of it
  int32_t heads, group, width;  // heads of keys, heads of queries for each of them, features of a head
  int32_t queries, keys, window, past;
  int32_t total;              // warps, where a warp has a position
  int32_t adds, adds_second;  // whether the first and the second result are added to what was there
  int32_t vector;             // whether all features lie at multiples of 16 bytes
};

// Task is a position, or a tile of positions, of a head of queries or of keys. They are counted along positions, heads and samples.
struct Task {
  int32_t sample, head, position;
};

DEVICE Task task_of(int32_t i, int32_t heads, int32_t positions) {
  const int32_t row = i / positions;
  return {row / heads, row % heads, i % positions};
}

template <class T>
DEVICE T* features(const AttentionParams& p, const Features& f, int32_t sample, int32_t position, int32_t head) {
  return global<T>(f.first) + (f.sample * sample + f.position * position + int64_t(head) * p.width);
}

template <class T>
DEVICE T& by_query(const ByQuery& b, int32_t sample, int32_t head, int32_t query) {
  return global<T>(b.first)[b.sample * sample + b.head * head + query];
}

DEVICE bool is_hidden(const ByKey& m, int32_t sample, int32_t key) { return m.first && !global<const int32_t>(m.first)[m.sample * sample + key]; }

}  // namespace dahl
