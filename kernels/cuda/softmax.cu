// Softmax cross-entropy and the squared error. A team computes a row:
// a warp where classes are few, so that nothing but shuffles joins the threads, and a block
// ("wide") where there are more than 1024, so that enough loads are under way. A thread takes
// every 32nd or 256th class; rows are read twice or three times, after the first time from
// the cache.
#include "reduce.h"

namespace dahl {

// SoftmaxParams is mirrored by kernels.softmaxParams. What an operation does not have is 0.
struct SoftmaxParams {
  uint64_t z, dz;  // rows×classes
  int64_t z_row, dz_row;
  uint64_t y, loss, correct, weight;
  double batch, smoothing;
  int32_t rows, classes;
};

// Row is the row of a team, and the thread's rank in it; row ≥ p.rows: there is none.
struct Row {
  int32_t row, rank;
};

template <int threads>
DEVICE Row row_of_team() {
  const int32_t rank = threadIdx.x % threads;
  return {int32_t(blockIdx.x * (blockDim.x / threads) + threadIdx.x / threads), rank};
}

// maximum is the first maximum of a row of z; NaN wins.
template <int threads, class T>
DEVICE Best<T> maximum(const T* z, int32_t classes, int32_t rank) {
  Best<T> most = {0, -1};
  for (int32_t c = rank; c < classes; c += threads) most = better(most, Best<T>{z[c], c});
  return best<threads>(most);
}

// Class is that of a row and its value, loaded before the trees so that nothing waits
// for them at the end.
template <class T>
struct Class {
  int32_t y;
  T z;
};

template <class T>
DEVICE Class<T> class_of(const SoftmaxParams& p, const Row& r, const T* z) {
  const int32_t y = global<const int32_t>(p.y)[r.row];
  return {y, z[y < 0 ? 0 : y]};
}

// weight_of is what losses and gradients are multiplied by: a row without a label has none.
template <class T>
DEVICE T weight_of(const SoftmaxParams& p, int32_t y) {
  if (y < 0) return T(0);
  return p.weight ? *global<const T>(p.weight) : T(1);
}

// Target is how much of a sample belongs to its class beside share, which belongs to every class.
template <class T>
struct Target {
  T keep, share;
};

template <class T>
DEVICE Target<T> target_of(const SoftmaxParams& p) {
  return {T(1. - p.smoothing), T(p.smoothing / double(p.classes))};
}

// report needs all threads of a team: with smoothing they add up the logits of their classes.
template <int threads, class T>
DEVICE void report(const SoftmaxParams& p, const Row& r, const T* z, const Class<T>& c, T m, T s, int32_t predicted) {
  const Target<T> q = target_of<T>(p);
  T near = q.keep * (c.z - m);
  if (q.share != T(0)) {
    T all = 0;
    for (int32_t k = r.rank; k < p.classes; k += threads) all += z[k] - m;
    near += q.share * sum<threads>(all);
  }
  if (r.rank != 0) return;
  global<T>(p.loss)[r.row] = c.y < 0 ? T(0) : weight_of<T>(p, c.y) * (log(s) - near);
  global<uint8_t>(p.correct)[r.row] = predicted == c.y;
}

// gradient is (e/s - target)/batch.
template <class T>
DEVICE T gradient(T e, T s, bool is_y, const Target<T>& q, T batch) {
  T p = e / s - q.share;
  if (is_y) p -= q.keep;
  return p / batch;
}

template <int threads, class T>
DEVICE void softmax(const SoftmaxParams& p) {
  const Row r = row_of_team<threads>();
  if (r.row >= p.rows) return;  // with all its team
  const T* z = global<const T>(p.z) + p.z_row * r.row;
  const Class<T> its = class_of(p, r, z);
  const Best<T> most = maximum<threads>(z, p.classes, r.rank);
  T s = 0;
  for (int32_t c = r.rank; c < p.classes; c += threads) s += exp(z[c] - most.value);
  s = sum<threads>(s);
  report<threads>(p, r, z, its, most.value, s, most.where);
  if (!p.dz) return;
  T* dz = global<T>(p.dz) + p.dz_row * r.row;
  const Target<T> q = target_of<T>(p);
  const T weight = weight_of<T>(p, its.y);
  for (int32_t c = r.rank; c < p.classes; c += threads)
    dz[c] = its.y < 0 ? T(0) : weight * gradient(exp(z[c] - most.value), s, c == its.y, q, T(p.batch));
}

// squared_error is Σ(z - t)²/classes, and 2·(z - t)/(batch·classes), where t is 1 for the class and
// else 0.
template <int threads, class T>
DEVICE void squared_error(const SoftmaxParams& p) {
  const Row r = row_of_team<threads>();
  if (r.row >= p.rows) return;
  const T* z = global<const T>(p.z) + p.z_row * r.row;
  T* dz = p.dz ? global<T>(p.dz) + p.dz_row * r.row : nullptr;
  const int32_t y = global<const int32_t>(p.y)[r.row];
  const T classes = T(p.classes), all = T(p.batch) * classes;
  T s = 0;
  for (int32_t c = r.rank; c < p.classes; c += threads) {
    const T d = z[c] - (c == y ? T(1) : T(0));
    s += d * d;
    if (dz) dz[c] = T(2) * d / all;
  }
  s = sum<threads>(s);
  const Best<T> most = maximum<threads>(z, p.classes, r.rank);
  if (r.rank != 0) return;
  global<T>(p.loss)[r.row] = s / classes;
  global<uint8_t>(p.correct)[r.row] = most.where == y;
}

// Four warps, or one block of 256, in both types.
#define TEAMS(name, body)                                              \
  ENTRY(name##_f32, SoftmaxParams, 128) { body<32, float>(p); }        \
  ENTRY(name##_f64, SoftmaxParams, 128) { body<32, double>(p); }       \
  ENTRY(name##_wide_f32, SoftmaxParams, 256) { body<256, float>(p); }  \
  ENTRY(name##_wide_f64, SoftmaxParams, 256) { body<256, double>(p); }

TEAMS(softmax_xent, softmax)
TEAMS(mse, squared_error)

}  // namespace dahl
