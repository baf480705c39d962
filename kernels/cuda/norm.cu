// Batch normalisation and dropout. Every sum goes in the order of the reference, a thread for each, so that the bits
// are those of a CPU; the build forbids the compiler to fuse products with sums. Threads side by side have channels side by side.
#include "division.h"
#include "philox.h"

namespace dahl {

// Image is where an operand over images lies, in the order samples, channels, rows, columns. It is mirrored by
// kernels.normImage.
struct Image {
  uint64_t first;
  int64_t stride[4];
};

// Matrix is rows of an element per channel. It is mirrored by kernels.normMatrix.
struct Matrix {
  uint64_t first;
  int64_t row;
};

// NormParams is mirrored by kernels.normParams. Extents are of rows, columns and channels, the
// order in which elements lie.
struct NormParams {
  Image image[4];
  Matrix s, q, k, kd;
  Division extent1, extent2, extent3;
  int32_t total;  // elements, or sums
  int32_t channels, rows, columns;
  int32_t relu, add;
};

template <class T>
DEVICE T* row(const Matrix& m, int32_t i) { return global<T>(m.first) + m.row * i; }

struct Place {
  int32_t n, c, h, w;
};

DEVICE Place place(const NormParams& p, int32_t element) {
  int32_t at[4];
  at[0] = p.extent1.split(p.extent2.split(p.extent3.split(element, at[3]), at[2]), at[1]);
  return {at[0], at[3], at[1], at[2]};
}

template <class T>
DEVICE T& at(const Image& i, const Place& p) {
  return global<T>(i.first)[i.stride[0] * p.n + i.stride[1] * p.c + i.stride[2] * p.h + i.stride[3] * p.w];
}

DEVICE int32_t thread() { return int32_t(blockIdx.x * blockDim.x + threadIdx.x); }

// each_pixel visits the pixels of a channel of a sample.
template <class F>
DEVICE void each_pixel(const NormParams& p, F f) {
  const int32_t n = thread() / p.channels, c = thread() - n * p.channels;
  for (int32_t h = 0; h < p.rows; h++)
    for (int32_t w = 0; w < p.columns; w++) f(Place{n, c, h, w});
}

// Images: x.
template <class T>
DEVICE void moments(const NormParams& p) {
  if (thread() >= p.total) return;
  const int32_t n = thread() / p.channels, c = thread() - n * p.channels;
  T s = 0, q = 0;
  each_pixel(p, [&](Place at_) { s += at<const T>(p.image[0], at_); });
  const T mean = s / T(p.rows * p.columns);
  each_pixel(p, [&](Place at_) {
    const T d = at<const T>(p.image[0], at_) - mean;
    q += d * d;
  });
  row<T>(p.s, n)[c] = s;
  row<T>(p.q, n)[c] = q;
}

ENTRY(moments_f32, NormParams, 256) { moments<float>(p); }
ENTRY(moments_f64, NormParams, 256) { moments<double>(p); }

template <class T>
DEVICE T normalised(const NormParams& p, T x, int32_t c) {
  return (x - row<const T>(p.k, 0)[c]) * row<const T>(p.k, 1)[c] + row<const T>(p.k, 2)[c];
}

// Images: y, x, r.
template <class T>
DEVICE void normalise(const NormParams& p) {
  if (thread() >= p.total) return;
  const Place to = place(p, thread());
  T v = normalised<T>(p, at<const T>(p.image[1], to), to.c);
  if (p.add) v += at<const T>(p.image[2], to);
  if (p.relu && v < T(0)) v = T(0);
  at<T>(p.image[0], to) = v;
}

ENTRY(batchnorm_f32, NormParams, 256) { normalise<float>(p); }
ENTRY(batchnorm_f64, NormParams, 256) { normalise<double>(p); }

// Images: dy, x.
template <class T>
DEVICE void gradient_sums(const NormParams& p) {
  if (thread() >= p.total) return;
  const int32_t n = thread() / p.channels, c = thread() - n * p.channels;
  const T mean = row<const T>(p.k, 0)[c];
  T s = 0, q = 0;
  each_pixel(p, [&](Place from) {
    T g = at<const T>(p.image[0], from);
    const T x = at<const T>(p.image[1], from);
    if (p.relu && !(normalised<T>(p, x, c) > T(0))) g = T(0);
    s += g;
    q += g * (x - mean);
  });
  row<T>(p.s, n)[c] = s;
  row<T>(p.q, n)[c] = q;
}

ENTRY(batchnorm_sums_f32, NormParams, 256) { gradient_sums<float>(p); }
ENTRY(batchnorm_sums_f64, NormParams, 256) { gradient_sums<double>(p); }

// Images: dy, y, x, r.
template <class T>
DEVICE void gate(const NormParams& p) {
  if (thread() >= p.total) return;
  const int32_t n = thread() / p.channels, c = thread() - n * p.channels;
  const T mean = row<const T>(p.k, 0)[c];
  T s = 0, q = 0;
  each_pixel(p, [&](Place from) {
    T g = at<T>(p.image[0], from);
    if (p.add) g += at<const T>(p.image[3], from);
    if (!(at<const T>(p.image[1], from) > T(0))) g = T(0);
    at<T>(p.image[0], from) = g;
    s += g;
    q += g * (at<const T>(p.image[2], from) - mean);
  });
  row<T>(p.s, n)[c] = s;
  row<T>(p.q, n)[c] = q;
}

ENTRY(batchnorm_gate_f32, NormParams, 256) { gate<float>(p); }
ENTRY(batchnorm_gate_f64, NormParams, 256) { gate<double>(p); }

// Images: dx, dy, x.
template <class T>
DEVICE void gradient(const NormParams& p) {
  if (thread() >= p.total) return;
  const Place to = place(p, thread());
  const T x = at<const T>(p.image[2], to), d = x - row<const T>(p.k, 0)[to.c];
  T g = at<const T>(p.image[1], to);
  if (p.relu && !(normalised<T>(p, x, to.c) > T(0))) g = T(0);
  at<T>(p.image[0], to) = row<const T>(p.kd, 0)[to.c] * g + row<const T>(p.kd, 1)[to.c] * d + row<const T>(p.kd, 2)[to.c];
}

ENTRY(batchnorm_dx_f32, NormParams, 256) { gradient<float>(p); }
ENTRY(batchnorm_dx_f64, NormParams, 256) { gradient<double>(p); }

// StatsParams is mirrored by kernels.statsParams. What an operation does not have is 0.
struct StatsParams {
  Matrix k, s, q, kd;
  uint64_t mean, variance, tracked, weight, bias, dw, db;
  double pixels, eps, momentum;
  int32_t channels, samples;
  int32_t add_dw, add_db;
};

// total adds up a column in the order of its rows.
template <class T>
DEVICE double total(const StatsParams& p, const Matrix& m, int32_t c) {
  double sum = 0;
  for (int32_t n = 0; n < p.samples; n++) sum += double(row<const T>(m, n)[c]);
  return sum;
}

// put fills in how a channel is normalised.
template <class T>
DEVICE void put(const StatsParams& p, int32_t c, double mean, double inverse) {
  row<T>(p.k, 0)[c] = T(mean);
  row<T>(p.k, 1)[c] = T(inverse * double(global<const T>(p.weight)[c]));
  row<T>(p.k, 2)[c] = global<const T>(p.bias)[c];
  row<T>(p.k, 3)[c] = T(inverse);
}

template <class T>
DEVICE void mix(const StatsParams& p, T& old, double now) { old = T((1 - p.momentum) * double(old) + p.momentum * now); }

// squares_around is the squares of all samples around a mean.
template <class T>
DEVICE double squares_around(const StatsParams& p, int32_t c, double mean) {
  double squares = 0;
  for (int32_t n = 0; n < p.samples; n++) {
    const double d = double(row<const T>(p.s, n)[c]) / p.pixels - mean;
    squares += double(row<const T>(p.q, n)[c]) + p.pixels * (d * d);
  }
  return squares;
}

// ValuesTotal is the number, the sum and the squares around the mean of some values.
struct ValuesTotal {
  double count, sum, squares;
};

template <class T>
DEVICE ValuesTotal values_total(const Matrix& r, int32_t c) {
  return {double(row<const T>(r, 0)[c]), double(row<const T>(r, 1)[c]), double(row<const T>(r, 2)[c])};
}

template <class T>
DEVICE void put_total(const Matrix& r, int32_t c, const ValuesTotal& v) {
  row<T>(r, 0)[c] = T(v.count);
  row<T>(r, 1)[c] = T(v.sum);
  row<T>(r, 2)[c] = T(v.squares);
}

DEVICE ValuesTotal merged(const ValuesTotal& a, const ValuesTotal& b) {
  const double count = a.count + b.count, d = b.sum / b.count - a.sum / a.count;
  return {count, a.sum + b.sum, a.squares + b.squares + d * d * a.count * b.count / count};
}

// The totals are k, which add_dw keeps.
template <class T>
DEVICE void moments_total(const StatsParams& p) {
  const int32_t c = thread();
  if (c >= p.channels) return;
  ValuesTotal now = {p.pixels * p.samples, total<T>(p, p.s, c), 0};
  now.squares = squares_around<T>(p, c, now.sum / now.count);
  put_total<T>(p.k, c, p.add_dw ? merged(values_total<T>(p.k, c), now) : now);
}

ENTRY(moments_total_f32, StatsParams, 256) { moments_total<float>(p); }
ENTRY(moments_total_f64, StatsParams, 256) { moments_total<double>(p); }

// The totals are k and kd.
template <class T>
DEVICE void moments_merge(const StatsParams& p) {
  const int32_t c = thread();
  if (c < p.channels) put_total<T>(p.k, c, merged(values_total<T>(p.k, c), values_total<T>(p.kd, c)));
}

ENTRY(moments_merge_f32, StatsParams, 256) { moments_merge<float>(p); }
ENTRY(moments_merge_f64, StatsParams, 256) { moments_merge<double>(p); }

template <class T>
DEVICE void stats(const StatsParams& p) {
  const int32_t c = thread();
  if (c == 0) ++*global<int64_t>(p.tracked);
  if (c >= p.channels) return;
  const double count = p.pixels * p.samples, mean = total<T>(p, p.s, c) / count;
  const double squares = squares_around<T>(p, c, mean);
  put<T>(p, c, mean, 1 / sqrt(squares / count + p.eps));
  mix(p, global<T>(p.mean)[c], mean);
  mix(p, global<T>(p.variance)[c], squares / (count - 1));
}

ENTRY(batchnorm_stats_f32, StatsParams, 256) { stats<float>(p); }
ENTRY(batchnorm_stats_f64, StatsParams, 256) { stats<double>(p); }

template <class T>
DEVICE void running(const StatsParams& p) {
  const int32_t c = thread();
  if (c < p.channels) put<T>(p, c, double(global<const T>(p.mean)[c]), 1 / sqrt(double(global<const T>(p.variance)[c]) + p.eps));
}

ENTRY(batchnorm_running_f32, StatsParams, 256) { running<float>(p); }
ENTRY(batchnorm_running_f64, StatsParams, 256) { running<double>(p); }

template <class T>
DEVICE void put_sum(T& old, T v, int32_t add) { old = add ? v + old : v; }

template <class T>
DEVICE void gradient_total(const StatsParams& p) {
  const int32_t c = thread();
  if (c >= p.channels) return;
  put_sum<T>(row<T>(p.k, 0)[c], T(total<T>(p, p.s, c)), p.add_dw);
  put_sum<T>(row<T>(p.k, 1)[c], T(total<T>(p, p.q, c)), p.add_dw);
}

ENTRY(batchnorm_total_f32, StatsParams, 256) { gradient_total<float>(p); }
ENTRY(batchnorm_total_f64, StatsParams, 256) { gradient_total<double>(p); }

template <class T>
DEVICE void weight_gradient(const StatsParams& p) {
  const int32_t c = thread();
  if (c >= p.channels) return;
  const double s = total<T>(p, p.s, c), q = total<T>(p, p.q, c), count = p.pixels * p.samples;
  const T gain = row<const T>(p.k, 1)[c];
  const double scale = double(gain), inverse = double(row<const T>(p.k, 3)[c]);
  put_sum<T>(global<T>(p.dw)[c], T(inverse * q), p.add_dw);
  put_sum<T>(global<T>(p.db)[c], T(s), p.add_db);
  row<T>(p.kd, 0)[c] = gain;
  row<T>(p.kd, 1)[c] = T(-scale * inverse * inverse * q / count);
  row<T>(p.kd, 2)[c] = T(-scale * s / count);
}

ENTRY(batchnorm_dw_f32, StatsParams, 256) { weight_gradient<float>(p); }
ENTRY(batchnorm_dw_f64, StatsParams, 256) { weight_gradient<double>(p); }

// FoldParams is mirrored by kernels.foldParams. Strides are of filters, channels, rows and columns of the window.
struct FoldParams {
  Image to, from;
  uint64_t shift, mean, variance, weight, bias, added;  // added is 0 where the convolution has no bias
  double eps;
  int32_t filters, channels, rows, columns;
};

// A thread has one tap of all channels of a filter.
template <class T>
DEVICE void fold(const FoldParams& p) {
  const int32_t tap = thread() / p.filters, f = thread() - tap * p.filters;
  if (tap >= p.rows * p.columns) return;
  const double scale = double(global<const T>(p.weight)[f]) / sqrt(double(global<const T>(p.variance)[f]) + p.eps);
  if (tap == 0) {
    double center = double(global<const T>(p.mean)[f]);
    if (p.added) center -= double(global<const T>(p.added)[f]);
    global<T>(p.shift)[f] = T(double(global<const T>(p.bias)[f]) - scale * center);
  }
  for (int32_t c = 0; c < p.channels; c++) {
    const Place where = {f, c, tap / p.columns, tap % p.columns};
    at<T>(p.to, where) = T(scale * double(at<const T>(p.from, where)));
  }
}

ENTRY(batchnorm_fold_f32, FoldParams, 256) { fold<float>(p); }
ENTRY(batchnorm_fold_f64, FoldParams, 256) { fold<double>(p); }

// DropoutParams is mirrored by kernels.dropoutParams. In keys y is the keys and x the seed.
struct DropoutParams {
  Image y, x;
  uint64_t keys, hyper;
  uint64_t least;  // of a word of what stays
  double scale;
  Division extent1, extent2, extent3;  // as in NormParams
  int32_t total, channels, rows, columns;
  int32_t layer;
};

template <class T>
DEVICE void dropout(const DropoutParams& p) {
  if (thread() >= p.total) return;
  NormParams order = {};
  order.extent1 = p.extent1;
  order.extent2 = p.extent2;
  order.extent3 = p.extent3;
  const Place to = place(order, thread());
  const uint32_t e = uint32_t((to.c * p.rows + to.h) * p.columns + to.w);
  const Words words = philox(uint64_t(global<const int64_t>(p.keys)[to.n]), {{e / 4, 0, 0, 0}});
  const uint32_t word = words.at(e % 4);
  at<T>(p.y, to) = uint64_t(word) >= p.least ? at<const T>(p.x, to) * T(p.scale) : T(0);
}

ENTRY(dropout_f32, DropoutParams, 256) { dropout<float>(p); }
ENTRY(dropout_f64, DropoutParams, 256) { dropout<double>(p); }

// The type is that of the task, not of the data.
DEVICE void dropout_keys(const DropoutParams& p) {
  const int32_t n = thread();
  if (n >= p.total) return;
  const uint64_t step = uint64_t(global<const double>(p.hyper)[1]);
  const Words words = philox(uint64_t(*global<const int64_t>(p.x.first)), {{uint32_t(step), uint32_t(step >> 32), uint32_t(p.layer), uint32_t(n)}});
  global<int64_t>(p.keys)[n] = int64_t(uint64_t(words.w[0]) | uint64_t(words.w[1]) << 32);
}

ENTRY(dropout_keys_f32, DropoutParams, 256) { dropout_keys(p); }
ENTRY(dropout_keys_f64, DropoutParams, 256) { dropout_keys(p); }

// The keys of samples are in keys, and those of their rows in y.
DEVICE void dropout_rows(const DropoutParams& p) {
  if (thread() >= p.total) return;
  const int32_t each = p.rows * p.columns, n = thread() / each, e = thread() % each, h = e / p.columns;
  const Words words = philox(uint64_t(global<const int64_t>(p.keys)[n]), {{uint32_t(e), 0, 0, 0}});
  global<int64_t>(p.y.first)[p.y.stride[0] * n + p.y.stride[1] * h + e % p.columns] = int64_t(uint64_t(words.w[0]) | uint64_t(words.w[1]) << 32);
}

ENTRY(dropout_rows_f32, DropoutParams, 256) { dropout_rows(p); }
ENTRY(dropout_rows_f64, DropoutParams, 256) { dropout_rows(p); }

}  // namespace dahl
