// A dense layer with the loss behind it: a warp has a row of x, or of w, and computes its logits one after the other. Nothing keeps them.
#include "reduce.h"

namespace dahl {

// LogitRows is rows of an element per column. It is mirrored by gpu.normMatrix.
struct LogitRows {
  uint64_t first;
  int64_t row;
};

// XentParams is mirrored by gpu.xentParams. What an operation does not have is 0.
struct XentParams {
  LogitRows x, w, r, to;
  uint64_t y, loss, correct, weight;
  double batch;
  int32_t rows, classes, columns, first, adds;
};

template <class T>
DEVICE T* row_of(const LogitRows& m, int32_t i) {
  return global<T>(m.first) + m.row * i;
}

DEVICE int32_t row_of_warp() { return int32_t(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32); }

template <class T>
DEVICE T logit(const XentParams& p, int32_t n, int32_t f) {
  const T *x = row_of<const T>(p.x, n), *w = row_of<const T>(p.w, f);
  T z = 0;
  for (int32_t c = lane(); c < p.columns; c += 32) z += x[c] * w[c];
  return sum<32>(z);
}

// Sums are the greatest logit, the sum of exponentials and the logit of the label.
template <class T>
struct Sums {
  T most, sum, own;
};

template <class T>
DEVICE Sums<T> sums_at(const LogitRows& m, int32_t n) {
  const T* r = row_of<const T>(m, n);
  return {r[0], r[1], r[2]};
}

template <class T>
DEVICE void put(const LogitRows& m, int32_t n, const Sums<T>& s) {
  T* r = row_of<T>(m, n);
  r[0] = s.most, r[1] = s.sum, r[2] = s.own;
}

template <class T>
DEVICE Sums<T> merged(const Sums<T>& a, const Sums<T>& b) {
  const T most = a.most > b.most ? a.most : b.most;
  return {most, a.sum * exp(a.most - most) + b.sum * exp(b.most - most), a.own + b.own};
}

template <class T>
DEVICE void xent_sums(const XentParams& p) {
  const int32_t n = row_of_warp();
  if (n >= p.rows) return;  // with all its warp
  const int32_t y = global<const int32_t>(p.y)[n];
  Sums<T> all = {};
  for (int32_t f = 0; f < p.classes; f++) {
    const T z = logit<T>(p, n, f);
    const Sums<T> one = {z, T(1), y >= 0 && y == f + p.first ? z : T(0)};
    all = f > 0 ? merged(all, one) : one;
  }
  if (lane() != 0) return;
  put(p.to, n, p.adds ? merged(sums_at<T>(p.to, n), all) : all);
}

ENTRY(xent_sums_f32, XentParams, 256) { xent_sums<float>(p); }
ENTRY(xent_sums_f64, XentParams, 256) { xent_sums<double>(p); }

template <class T>
DEVICE void xent_merge(const XentParams& p) {
  const int32_t n = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
  if (n < p.rows) put(p.to, n, merged(sums_at<T>(p.to, n), sums_at<T>(p.r, n)));
}

ENTRY(xent_merge_f32, XentParams, 256) { xent_merge<float>(p); }
ENTRY(xent_merge_f64, XentParams, 256) { xent_merge<double>(p); }

template <class T>
DEVICE T weight_of(const XentParams& p) {
  return p.weight ? *global<const T>(p.weight) : T(1);
}

template <class T>
DEVICE void xent_loss(const XentParams& p) {
  const int32_t n = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
  if (n >= p.rows) return;
  const bool has = global<const int32_t>(p.y)[n] >= 0;
  const Sums<T> s = sums_at<T>(p.r, n);
  global<T>(p.loss)[n] = has ? weight_of<T>(p) * (log(s.sum) - (s.own - s.most)) : T(0);
  global<uint8_t>(p.correct)[n] = has && s.own == s.most;
}

ENTRY(xent_f32, XentParams, 256) { xent_loss<float>(p); }
ENTRY(xent_f64, XentParams, 256) { xent_loss<double>(p); }

// add_gradient adds the gradient of the logit of row n and class f times a row to the result. Each thread has its columns.
template <class T>
DEVICE void add_gradient(const XentParams& p, int32_t n, int32_t f, T* to, const T* with) {
  const int32_t y = global<const int32_t>(p.y)[n];
  if (y < 0) return;  // with all the warp
  const Sums<T> s = sums_at<T>(p.r, n);
  T dz = exp(logit<T>(p, n, f) - s.most) / s.sum;
  if (y == f + p.first) dz -= T(1);
  dz *= weight_of<T>(p) / T(p.batch);
  for (int32_t c = lane(); c < p.columns; c += 32) to[c] += dz * with[c];
}

template <class T>
DEVICE void begin(const XentParams& p, T* to) {
  if (p.adds) return;
  for (int32_t c = lane(); c < p.columns; c += 32) to[c] = 0;
}

template <class T>
DEVICE void xent_dx(const XentParams& p) {
  const int32_t n = row_of_warp();
  if (n >= p.rows) return;
  T* dx = row_of<T>(p.to, n);
  begin(p, dx);
  for (int32_t f = 0; f < p.classes; f++) add_gradient(p, n, f, dx, row_of<const T>(p.w, f));
}

ENTRY(xent_dx_f32, XentParams, 256) { xent_dx<float>(p); }
ENTRY(xent_dx_f64, XentParams, 256) { xent_dx<double>(p); }

template <class T>
DEVICE void xent_dw(const XentParams& p) {
  const int32_t f = row_of_warp();
  if (f >= p.classes) return;
  T* dw = row_of<T>(p.to, f);
  begin(p, dw);
  for (int32_t n = 0; n < p.rows; n++) add_gradient(p, n, f, dw, row_of<const T>(p.x, n));
}

ENTRY(xent_dw_f32, XentParams, 256) { xent_dw<float>(p); }
ENTRY(xent_dw_f64, XentParams, 256) { xent_dw<double>(p); }

}  // namespace dahl
