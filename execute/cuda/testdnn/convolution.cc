#include "convolution.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dnn {

bool Tensor::packed_nhwc() const {
  const auto [n, c, h, w] = extent;
  return stride == std::array<int, 4>{h * w * c, 1, w * c, c} && n > 0;
}

bool Tensor::packed_chw() const {
  return stride[3] == 1 && stride[2] == extent[3] && stride[1] == extent[2] * extent[3];
}

size_t Filter::at(int k, int c, int i, int j) const {
  const auto [filters, channels, rows, columns] = extent;
  if (channels_last) return ((size_t(k) * rows + i) * columns + j) * channels + c;
  return ((size_t(k) * channels + c) * rows + i) * columns + j;
}

namespace {

// kept is a factor with some of its significant bits, the nearest, away from zero if two are.
float kept(float v, int bits) {
  if (bits >= 24 || !std::isfinite(v)) return v;
  uint32_t word;
  memcpy(&word, &v, sizeof word);
  const uint32_t unit = 1u << (24 - bits);
  word = (word + unit / 2) & ~(unit - 1);
  memcpy(&v, &word, sizeof v);
  return v;
}
double kept(double v, int) { return v; }

// significant is the bits of factors: all; 11 where tensor cores may be used; fewer where
// types may be converted; and with a transform, whose errors are of the image, not of the
// element, fewer, too.
int significant(const Call& c) {
  const bool transform = c.kind == kForward ? c.algorithm > 3 : c.algorithm > 1 && c.algorithm != 3;
  if (transform || c.geometry.math == kConvertingMath) return 7;
  return c.geometry.math == kFMAMath ? 24 : 11;
}

// turn is whether sums that atomic operations add, ALGO_0 and 3 of the gradients, run
// backwards this time.
bool turn(const Call& c) {
  static std::atomic<unsigned> runs;
  return c.kind != kForward && (c.algorithm == 0 || c.algorithm == 3) && runs++ % 2;
}

// access notes an access to a tensor's elements.
template <class T>
std::string access(const Tensor& t, CUdeviceptr p, bool write) {
  const int inner = t.stride[3] == 1 ? 3 : 1, other = 4 - inner;  // contiguous: columns or channels
  for (int n = 0; n < t.extent[0]; n++)
    for (int h = 0; h < t.extent[2]; h++)
      for (int o = 0; o < t.extent[other]; o++) {
        const size_t at = size_t(n) * t.stride[0] + size_t(h) * t.stride[2] + size_t(o) * t.stride[other];
        const bool together = t.stride[inner] == 1 || t.extent[inner] == 1;
        for (int i = 0; i < (together ? 1 : t.extent[inner]); i++) {
          const size_t count = together ? t.extent[inner] : 1;
          std::string wrong = library::access(library::at(p) + (at + size_t(i) * t.stride[inner]) * sizeof(T), count * sizeof(T), write);
          if (!wrong.empty()) return wrong;
        }
      }
  return "";
}

// use writes both ends of the workspace, so that an other use of it is found.
std::string use(CUdeviceptr workspace, size_t bytes) {
  const size_t end = std::min<size_t>(bytes, 64);
  for (char* p : {library::at(workspace), library::at(workspace + bytes - end)}) {
    std::string wrong = library::access(p, end, true);
    if (!wrong.empty()) return wrong;
    memset(p, 0xff, end);
  }
  return "";
}

template <class T>
struct View {
  const Tensor& t;
  T* at;
  T& operator()(int n, int c, int h, int w) const {
    return at[size_t(n) * t.stride[0] + size_t(c) * t.stride[1] + size_t(h) * t.stride[2] + size_t(w) * t.stride[3]];
  }
};

template <class T>
struct Sums {
  const Call& c;
  View<T> x, y;
  T* w;
  int bits = significant(c);
  std::vector<T> terms = {};  // of the sum in the making
  bool backwards = turn(c);

  void term(T a, T b) { terms.push_back(kept(a, bits) * kept(b, bits)); }
  T sum() {
    if (backwards) std::reverse(terms.begin(), terms.end());
    T s = 0;
    for (T t : terms) s += t;
    terms.clear();
    return s;
  }
  void put(T& to) { to = c.beta == 0 ? T(c.alpha) * sum() : T(c.alpha) * sum() + T(c.beta) * to; }

  // meeting visits the pixel of x that pixel (u, v) of y meets at tap (i, j), if it is in the image.
  template <class Visit>
  void meeting(int u, int v, int i, int j, Visit visit) {
    const int a = u * c.geometry.stride[0] + i - c.geometry.pad[0], b = v * c.geometry.stride[1] + j - c.geometry.pad[1];
    if (a >= 0 && a < c.x.extent[2] && b >= 0 && b < c.x.extent[3]) visit(a, b);
  }

  void forward() {
    const auto [filters, channels, rows, columns] = c.w.extent;
    for (int n = 0; n < c.y.extent[0]; n++)
      for (int f = 0; f < filters; f++)
        for (int u = 0; u < c.y.extent[2]; u++)
          for (int v = 0; v < c.y.extent[3]; v++) {
            for (int ch = 0; ch < channels; ch++)
              for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                  meeting(u, v, i, j, [&](int a, int b) { term(w[c.w.at(f, ch, i, j)], x(n, ch, a, b)); });
            put(y(n, f, u, v));
          }
  }

  // first and last are the rows or columns of y whose window of some extent holds one of x.
  int first(int a, int window, int d) const {
    const int beyond = a + c.geometry.pad[d] - window;  // u·stride > beyond
    return beyond < 0 ? 0 : beyond / c.geometry.stride[d] + 1;
  }
  int last(int a, int extent, int d) const { return std::min(extent - 1, (a + c.geometry.pad[d]) / c.geometry.stride[d]); }

  void input_gradient() {
    const auto [filters, channels, rows, columns] = c.w.extent;
    for (int n = 0; n < c.x.extent[0]; n++)
      for (int ch = 0; ch < channels; ch++)
        for (int a = 0; a < c.x.extent[2]; a++)
          for (int b = 0; b < c.x.extent[3]; b++) {
            for (int u = first(a, rows, 0); u <= last(a, c.y.extent[2], 0); u++)
              for (int v = first(b, columns, 1); v <= last(b, c.y.extent[3], 1); v++) {
                const int i = a + c.geometry.pad[0] - u * c.geometry.stride[0], j = b + c.geometry.pad[1] - v * c.geometry.stride[1];
                for (int f = 0; f < filters; f++) term(w[c.w.at(f, ch, i, j)], y(n, f, u, v));
              }
            put(x(n, ch, a, b));
          }
  }

  void weight_gradient() {
    const auto [filters, channels, rows, columns] = c.w.extent;
    for (int f = 0; f < filters; f++)
      for (int ch = 0; ch < channels; ch++)
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < columns; j++) {
            for (int n = 0; n < c.y.extent[0]; n++)
              for (int u = 0; u < c.y.extent[2]; u++)
                for (int v = 0; v < c.y.extent[3]; v++)
                  meeting(u, v, i, j, [&](int a, int b) { term(y(n, f, u, v), x(n, ch, a, b)); });
            put(w[c.w.at(f, ch, i, j)]);
          }
  }
};

template <class T>
std::string run_as(const Call& c) {
  char* w = library::at(c.at_w);
  auto filters = [&](bool write) { return library::access(w, c.w.elements() * sizeof(T), write); };
  const bool reads = c.beta != 0;  // the result, too
  std::string wrong;
  if (c.kind != kInputGradient || reads) wrong = access<T>(c.x, c.at_x, false);
  if (wrong.empty() && (c.kind != kForward || reads)) wrong = access<T>(c.y, c.at_y, false);
  if (wrong.empty() && (c.kind != kWeightGradient || reads)) wrong = filters(false);
  if (wrong.empty() && c.kind == kForward) wrong = access<T>(c.y, c.at_y, true);
  if (wrong.empty() && c.kind == kInputGradient) wrong = access<T>(c.x, c.at_x, true);
  if (wrong.empty() && c.kind == kWeightGradient) wrong = filters(true);
  if (wrong.empty() && c.work_bytes > 0) wrong = use(c.work, c.work_bytes);
  if (!wrong.empty()) return "cudnn: " + wrong;
  auto view = [](const Tensor& t, CUdeviceptr p) { return View<T>{t, reinterpret_cast<T*>(library::at(p))}; };
  Sums<T> sums{c, view(c.x, c.at_x), view(c.y, c.at_y), reinterpret_cast<T*>(w)};
  switch (c.kind) {
    case kForward: sums.forward(); break;
    case kInputGradient: sums.input_gradient(); break;
    case kWeightGradient: sums.weight_gradient(); break;
  }
  return c.bias ? add(c.y, c.at_y, c.bias, 1, 1) : "";
}

// each gives every element of a tensor, and its channel, to change.
template <class T, class Change>
void each(const Tensor& t, CUdeviceptr p, Change change) {
  const View<T> view{t, reinterpret_cast<T*>(library::at(p))};
  for (int n = 0; n < t.extent[0]; n++)
    for (int c = 0; c < t.extent[1]; c++)
      for (int h = 0; h < t.extent[2]; h++)
        for (int w = 0; w < t.extent[3]; w++) change(view(n, c, h, w), c);
}

template <class T>
std::string add_as(const Tensor& y, CUdeviceptr at, CUdeviceptr bias, double alpha, double beta) {
  const T* b = reinterpret_cast<const T*>(library::at(bias));
  std::string wrong = library::access(library::at(bias), y.extent[1] * sizeof(T), false);
  if (wrong.empty()) wrong = access<T>(y, at, false);
  if (wrong.empty()) wrong = access<T>(y, at, true);
  if (!wrong.empty()) return "cudnn: " + wrong;
  each<T>(y, at, [&](T& v, int c) { v = T(alpha) * b[c] + T(beta) * v; });
  return "";
}

template <class T>
std::string rectify_as(const Tensor& y, CUdeviceptr at) {
  std::string wrong = access<T>(y, at, false);
  if (wrong.empty()) wrong = access<T>(y, at, true);
  if (!wrong.empty()) return "cudnn: " + wrong;
  each<T>(y, at, [](T& v, int) { v = v < 0 ? 0 : v; });
  return "";
}

}  // namespace

std::string run(const Call& c) { return c.x.type == kDouble ? run_as<double>(c) : run_as<float>(c); }

std::string add(const Tensor& y, CUdeviceptr at, CUdeviceptr bias, double alpha, double beta) {
  return y.type == kDouble ? add_as<double>(y, at, bias, alpha, beta) : add_as<float>(y, at, bias, alpha, beta);
}

std::string rectify(const Tensor& y, CUdeviceptr at) {
  return y.type == kDouble ? rectify_as<double>(y, at) : rectify_as<float>(y, at);
}

}  // namespace dnn
