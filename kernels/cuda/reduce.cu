// The mean and the number of hits of a batch, and sums of squares and what follows from them. There are as many numbers as samples, a few
// thousand at most, so one block does it: each of its threads adds every 1024th, then a tree.
#include "reduce.h"

namespace dahl {

struct ReduceParams {
  uint64_t result, values;
  int32_t count;
};

constexpr int kThreads = 1024;

template <class T>
DEVICE void mean(const ReduceParams& p) {
  const T* values = global<const T>(p.values);
  T s = 0;
  for (int64_t i = threadIdx.x; i < p.count; i += kThreads) s += values[i];
  s = sum<kThreads>(s);
  if (threadIdx.x == 0) *global<T>(p.result) = s / T(p.count);
}

ENTRY(mean_f32, ReduceParams, kThreads) { mean<float>(p); }
ENTRY(mean_f64, ReduceParams, kThreads) { mean<double>(p); }

// total adds float64 numbers, whatever the type of the task.
DEVICE double total(uint64_t from, int32_t count) {
  const double* values = global<const double>(from);
  double s = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) s += values[i];
  return sum<kThreads>(s);
}

DEVICE void total(const ReduceParams& p) {
  const double s = total(p.values, p.count);
  if (threadIdx.x == 0) *global<double>(p.result) = s;
}

ENTRY(total_f32, ReduceParams, kThreads) { total(p); }
ENTRY(total_f64, ReduceParams, kThreads) { total(p); }

struct ClipParams {
  uint64_t clipped, hyper, values;
  double max_norm;
  int32_t count;
};

// clip writes {learning rate, step, factor} where hyper has the first two. 1e-6 is PyTorch's.
DEVICE void clip(const ClipParams& p) {
  const double factor = p.max_norm / (sqrt(total(p.values, p.count)) + 1e-6);
  if (threadIdx.x != 0) return;
  const double* hyper = global<const double>(p.hyper);
  double* clipped = global<double>(p.clipped);
  clipped[0] = hyper[0];
  clipped[1] = hyper[1];
  clipped[2] = factor > 1. ? 1. : factor;
}

ENTRY(clip_f32, ClipParams, kThreads) { clip(p); }
ENTRY(clip_f64, ClipParams, kThreads) { clip(p); }

// The type is that of the task, not of the data.
DEVICE void count(const ReduceParams& p) {
  const uint8_t* flags = global<const uint8_t>(p.values);
  int32_t n = 0;
  for (int64_t i = threadIdx.x; i < p.count; i += kThreads) n += flags[i] != 0;
  n = sum<kThreads>(n);
  if (threadIdx.x == 0) *global<int32_t>(p.result) = n;
}

ENTRY(count_f32, ReduceParams, kThreads) { count(p); }
ENTRY(count_f64, ReduceParams, kThreads) { count(p); }

// counted is the number of labels over the number of those that are not -1.
template <class T>
DEVICE void counted(const ReduceParams& p) {
  const int32_t* labels = global<const int32_t>(p.values);
  int32_t n = 0;
  for (int64_t i = threadIdx.x; i < p.count; i += kThreads) n += labels[i] >= 0;
  n = sum<kThreads>(n);
  if (threadIdx.x == 0) *global<T>(p.result) = n ? T(p.count) / T(n) : T(0);
}

ENTRY(counted_f32, ReduceParams, kThreads) { counted<float>(p); }
ENTRY(counted_f64, ReduceParams, kThreads) { counted<double>(p); }

}  // namespace dahl
