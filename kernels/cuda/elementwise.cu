// Operations on each element by itself: rectifier, addition, and the steps of the
// optimisers. Every operation is rounded by itself, in the order of the reference, so that
// bits are those of any CPU variant; the build forbids the compiler to fuse products with
// sums.
#include "reduce.h"
#include "rows.h"

namespace dahl {

struct ReLUParams {
  Rows rows;
  Strided y, mask, x;
};

// NaN passes through y and is 0 in the mask.
template <class T>
DEVICE void relu(const ReLUParams& p) {
  each_group(p.rows, [&](auto at) {
    const Group<T> x = load<T>(p.x, at);
    Group<T> y;
    Group<uint8_t> mask;
#pragma unroll
    for (int i = 0; i < kGroup; i++) {
      mask[i] = x[i] > T(0);
      y[i] = x[i] <= T(0) ? T(0) : x[i];
    }
    store(p.y, at, y);
    store(p.mask, at, mask);
  });
}

ENTRY(relu_f32, ReLUParams, 256) { relu<float>(p); }
ENTRY(relu_f64, ReLUParams, 256) { relu<double>(p); }

struct ReLUGradientParams {
  Rows rows;
  Strided dx, dy, mask;
};

template <class T>
DEVICE void relu_gradient(const ReLUGradientParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> d = load<T>(p.dy, at);
    const Group<uint8_t> mask = load<uint8_t>(p.mask, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++)
      if (!mask[i]) d[i] = T(0);
    store(p.dx, at, d);
  });
}

ENTRY(relu_dx_f32, ReLUGradientParams, 256) { relu_gradient<float>(p); }
ENTRY(relu_dx_f64, ReLUGradientParams, 256) { relu_gradient<double>(p); }

struct AddParams {
  Rows rows;
  Strided dst, src;
};

template <class T>
DEVICE void add(const AddParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> d = load<T>(p.dst, at);
    const Group<T> s = load<T>(p.src, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) d[i] += s[i];
    store(p.dst, at, d);
  });
}

ENTRY(add_f32, AddParams, 256) { add<float>(p); }
ENTRY(add_f64, AddParams, 256) { add<double>(p); }

struct SumParams {
  Rows rows;
  Strided y, a, b;
};

template <class T>
DEVICE void sum_of_two(const SumParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> y = load<T>(p.a, at);
    const Group<T> b = load<T>(p.b, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) y[i] += b[i];
    store(p.y, at, y);
  });
}

ENTRY(sum_f32, SumParams, 256) { sum_of_two<float>(p); }
ENTRY(sum_f64, SumParams, 256) { sum_of_two<double>(p); }

template <class T>
DEVICE void product_of_two(const SumParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> y = load<T>(p.a, at);
    const Group<T> b = load<T>(p.b, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) y[i] *= b[i];
    store(p.y, at, y);
  });
}

ENTRY(multiply_f32, SumParams, 256) { product_of_two<float>(p); }
ENTRY(multiply_f64, SumParams, 256) { product_of_two<double>(p); }

struct SquaresParams {
  Rows rows;
  Strided g;
  uint64_t partial;  // of each block, float64
};

template <class T>
DEVICE void squares(const SquaresParams& p) {
  T s = 0;
  each_group(p.rows, [&](auto at) {
    const Group<T> g = load<T>(p.g, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) s += g[i] * g[i];
  });
  s = sum<256>(s);
  if (threadIdx.x == 0) global<double>(p.partial)[blockIdx.x] = double(s);
}

ENTRY(squares_f32, SquaresParams, 256) { squares<float>(p); }
ENTRY(squares_f64, SquaresParams, 256) { squares<double>(p); }

struct SGDParams {
  Rows rows;
  Strided w, g, v;  // v is looked at only where there is a momentum
  uint64_t hyper;   // {learning rate, step, factor}, float64
  double momentum, decay;
  int32_t nesterov, clipped;  // clipped: whether there is the factor
};

template <class T>
DEVICE void sgd(const SGDParams& p) {
  const double* hyper = global<const double>(p.hyper);
  const T rate = T(hyper[0]), factor = p.clipped ? T(hyper[2]) : T(1), momentum = T(p.momentum), decay = T(p.decay);
  each_group(p.rows, [&](auto at) {
    Group<T> w = load<T>(p.w, at), g = load<T>(p.g, at), v = {};
    if (momentum != T(0)) v = load<T>(p.v, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) {
      g[i] *= factor;
      if (decay != T(0)) g[i] += decay * w[i];
      if (momentum != T(0)) {
        v[i] = momentum * v[i] + g[i];
        g[i] = p.nesterov ? g[i] + momentum * v[i] : v[i];
      }
      w[i] -= rate * g[i];
    }
    if (momentum != T(0)) store(p.v, at, v);
    store(p.w, at, w);
  });
}

ENTRY(sgd_f32, SGDParams, 256) { sgd<float>(p); }
ENTRY(sgd_f64, SGDParams, 256) { sgd<double>(p); }

struct AdamParams {
  Rows rows;
  Strided w, g, m, v;
  uint64_t hyper;  // {learning rate, step from 1, factor}, float64
  double beta1, beta2, eps, decay;
  int32_t decoupled;  // whether the decay shrinks the weight, beside the gradient
  int32_t clipped;    // whether there is the factor
};

// What depends on the step only, two powers of some twenty products in float64, is computed
// by one thread of each block.
template <class T>
DEVICE void adam(const AdamParams& p) {
  SHARED(T, step, [4]);
  if (threadIdx.x == 0) {
    const double* hyper = global<const double>(p.hyper);
    const uint32_t t = uint32_t(hyper[1]);
    step[0] = T(hyper[0] / (1. - power(p.beta1, t)));
    step[1] = T(sqrt(1. - power(p.beta2, t)));
    step[3] = p.clipped ? T(hyper[2]) : T(1);
    step[2] = p.decoupled ? T(1. - hyper[0] * p.decay) : T(1);
  }
  sync();
  const T rate = step[0], root = step[1], keep = step[2], factor = step[3], eps = T(p.eps), decay = p.decoupled ? T(0) : T(p.decay);
  const T beta1 = T(p.beta1), beta2 = T(p.beta2), gain1 = T(1. - p.beta1), gain2 = T(1. - p.beta2);
  each_group(p.rows, [&](auto at) {
    Group<T> w = load<T>(p.w, at), g = load<T>(p.g, at), m = load<T>(p.m, at), v = load<T>(p.v, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) {
      g[i] *= factor;
      if (decay != T(0)) g[i] += decay * w[i];
      m[i] = beta1 * m[i] + gain1 * g[i];
      v[i] = beta2 * v[i] + gain2 * g[i] * g[i];
      w[i] = keep * w[i] - rate * m[i] / (sqrt(v[i]) / root + eps);
    }
    store(p.m, at, m);
    store(p.v, at, v);
    store(p.w, at, w);
  });
}

ENTRY(adam_f32, AdamParams, 256) { adam<float>(p); }
ENTRY(adam_f64, AdamParams, 256) { adam<double>(p); }

}  // namespace dahl
