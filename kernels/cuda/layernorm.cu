// Layer normalisations: a warp has a row, which it reads once from memory and then from a cache. Sums are in the type
// itself, 32 of them that a tree joins. Sums over rows go in their order, with a thread for each column.
#include "reduce.h"

namespace dahl {

// RowMatrix is rows of an element per column. It is mirrored by gpu.normMatrix.
struct RowMatrix {
  uint64_t first;
  int64_t row;
};

// RowNormParams is mirrored by gpu.rowNormParams. What an operation does not have is 0. y is a result, and g the
// gradient that is read.
struct RowNormParams {
  RowMatrix x, y, g, k;
  uint64_t w, b;
  double eps;
  int32_t rows, columns;
  int32_t center, add_w, add_b;
};

template <class T>
DEVICE T* row_of(const RowMatrix& m, int32_t i) {
  return global<T>(m.first) + m.row * i;
}

DEVICE int32_t row_of_warp() { return int32_t(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32); }

template <class T>
DEVICE void layer_norm(const RowNormParams& p) {
  const int32_t n = row_of_warp();
  if (n >= p.rows) return;  // with all its warp
  const T* x = row_of<const T>(p.x, n);
  T mean = 0, squares = 0;
  if (p.center) {
    for (int32_t c = lane(); c < p.columns; c += 32) mean += x[c];
    mean = sum<32>(mean) / T(p.columns);
  }
  for (int32_t c = lane(); c < p.columns; c += 32) squares += (x[c] - mean) * (x[c] - mean);
  const T inverse = T(1) / sqrt(sum<32>(squares) / T(p.columns) + T(p.eps));
  T* y = row_of<T>(p.y, n);
  const T *w = global<const T>(p.w), *b = p.b ? global<const T>(p.b) : nullptr;
  for (int32_t c = lane(); c < p.columns; c += 32) {
    const T v = (x[c] - mean) * inverse * w[c];
    y[c] = b ? v + b[c] : v;
  }
  if (lane() == 0) {
    row_of<T>(p.k, n)[0] = mean;
    row_of<T>(p.k, n)[1] = inverse;
  }
}

ENTRY(layernorm_f32, RowNormParams, 256) { layer_norm<float>(p); }
ENTRY(layernorm_f64, RowNormParams, 256) { layer_norm<double>(p); }

template <class T>
DEVICE void layer_norm_gradient(const RowNormParams& p) {
  const int32_t n = row_of_warp();
  if (n >= p.rows) return;
  const T *x = row_of<const T>(p.x, n), *dy = row_of<const T>(p.g, n), *k = row_of<const T>(p.k, n), *w = global<const T>(p.w);
  const T mean = k[0], inverse = k[1];
  T all = 0, products = 0;
  for (int32_t c = lane(); c < p.columns; c += 32) {
    const T g = dy[c] * w[c];
    all += g;
    products += g * ((x[c] - mean) * inverse);
  }
  all = p.center ? sum<32>(all) / T(p.columns) : T(0);
  products = sum<32>(products) / T(p.columns);
  T* dx = row_of<T>(p.y, n);
  for (int32_t c = lane(); c < p.columns; c += 32) dx[c] = inverse * (dy[c] * w[c] - all - (x[c] - mean) * inverse * products);
}

ENTRY(layernorm_dx_f32, RowNormParams, 256) { layer_norm_gradient<float>(p); }
ENTRY(layernorm_dx_f64, RowNormParams, 256) { layer_norm_gradient<double>(p); }

template <class T>
DEVICE void layer_norm_weights(const RowNormParams& p) {
  const int32_t c = int32_t(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= p.columns) return;
  T products = 0, all = 0;
  for (int32_t n = 0; n < p.rows; n++) {
    const T g = row_of<const T>(p.g, n)[c], *k = row_of<const T>(p.k, n);
    products += g * ((row_of<const T>(p.x, n)[c] - k[0]) * k[1]);
    all += g;
  }
  T& dw = global<T>(p.w)[c];
  dw = p.add_w ? dw + products : products;
  if (!p.b) return;
  T& db = global<T>(p.b)[c];
  db = p.add_b ? db + all : all;
}

ENTRY(layernorm_dw_f32, RowNormParams, 256) { layer_norm_weights<float>(p); }
ENTRY(layernorm_dw_f64, RowNormParams, 256) { layer_norm_weights<double>(p); }

}  // namespace dahl
