// The mean and the number of hits of a batch. There are as many numbers as samples, a few
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

}  // namespace dahl
