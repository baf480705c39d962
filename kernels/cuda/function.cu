// Functions that a layer applies to every element, and dx = dy·f'. A function is a struct with its
// value and its slope, which is given x or, where that is enough, y; see kernels.Function.
#include "rows.h"

namespace dahl {

struct Tanh {
  template <class T>
  static DEVICE T value(T x, T) {
    return tanh(x);
  }
  template <class T>
  static DEVICE T slope(T y, T) {
    return T(1) - y * y;
  }
};

struct Sigmoid {
  template <class T>
  static DEVICE T value(T x, T) {
    return sigmoid(x);
  }
  template <class T>
  static DEVICE T slope(T y, T) {
    return y * (T(1) - y);
  }
};

struct GELU {
  template <class T>
  static DEVICE T value(T x, T) {
    const T below = normal(x).below;
    return x * (x < T(0) ? below : T(1) - below);
  }
  template <class T>
  static DEVICE T slope(T x, T) {
    const Normal<T> n = normal(x);
    return (x < T(0) ? n.below : T(1) - n.below) + x * n.density;
  }
};

// (1 + tanh u)/2 is the sigmoid of 2u.
struct GELUTanh {
  static constexpr double kRoot = 1.5957691216057308, kCube = 0.044715;  // √(8/π)

  template <class T>
  static DEVICE T value(T x, T) {
    return x * sigmoid(T(kRoot) * (x + T(kCube) * x * x * x));
  }
  template <class T>
  static DEVICE T slope(T x, T) {
    const T s = sigmoid(T(kRoot) * (x + T(kCube) * x * x * x));
    return s + x * s * (T(1) - s) * (T(kRoot) * (T(1) + T(3 * kCube) * x * x));
  }
};

struct SiLU {
  template <class T>
  static DEVICE T value(T x, T) {
    return x * sigmoid(x);
  }
  template <class T>
  static DEVICE T slope(T x, T) {
    const T s = sigmoid(x);
    return s + x * s * (T(1) - s);
  }
};

struct LeakyReLU {
  template <class T>
  static DEVICE T value(T x, T slope) {
    return x > T(0) ? x : slope * x;
  }
  template <class T>
  static DEVICE T slope(T x, T slope) {
    return x > T(0) ? T(1) : slope;
  }
};

// The setting is that of functions that have one.
struct ValueParams {
  Rows rows;
  Strided y, x;
  double setting;
};

template <class F, class T>
DEVICE void values(const ValueParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> x = load<T>(p.x, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) x[i] = F::value(x[i], T(p.setting));
    store(p.y, at, x);
  });
}

struct SlopeParams {
  Rows rows;
  Strided dx, dy, v;
  double setting;
};

template <class F, class T>
DEVICE void slopes(const SlopeParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> d = load<T>(p.dy, at);
    const Group<T> v = load<T>(p.v, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++) d[i] *= F::slope(v[i], T(p.setting));
    store(p.dx, at, d);
  });
}

#define FUNCTION(name, F)                                               \
  ENTRY(name##_f32, ValueParams, 256) { values<F, float>(p); }          \
  ENTRY(name##_f64, ValueParams, 256) { values<F, double>(p); }         \
  ENTRY(name##_dx_f32, SlopeParams, 256) { slopes<F, float>(p); }       \
  ENTRY(name##_dx_f64, SlopeParams, 256) { slopes<F, double>(p); }

FUNCTION(tanh, Tanh)
FUNCTION(sigmoid, Sigmoid)
FUNCTION(gelu, GELU)
FUNCTION(gelu_tanh, GELUTanh)
FUNCTION(silu, SiLU)
FUNCTION(leaky_relu, LeakyReLU)

}  // namespace dahl
