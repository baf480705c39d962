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

size_t Filter::at(int k, int c, int i, int j) const {
  const auto [filters, channels, rows, columns] = extent;
  return ((size_t(k) * rows + i) * columns + j) * channels + c;
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
std::string access(const Tensor& t, CUdeviceptr p, bool write) {
  const int inner = t.stride[3] == 1 ? 3 : 1, other = 4 - inner;  // contiguous: columns or channels
  for (int n = 0; n < t.extent[0]; n++)
    for (int h = 0; h < t.extent[2]; h++)
      for (int o = 0; o < t.extent[other]; o++) {
        const size_t at = size_t(n) * t.stride[0] + size_t(h) * t.stride[2] + size_t(o) * t.stride[other];
        const bool together = t.stride[inner] == 1 || t.extent[inner] == 1;
        for (int i = 0; i < (together ? 1 : t.extent[inner]); i++) {
          const size_t count = together ? t.extent[inner] : 1;
          std::string wrong = library::access(library::at(p) + (at + size_t(i) * t.stride[inner]) * sizeof(float), count * sizeof(float), write);
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

struct View {
  const Tensor& t;
  float* at;
  float& operator()(int n, int c, int h, int w) const {
    return at[size_t(n) * t.stride[0] + size_t(c) * t.stride[1] + size_t(h) * t.stride[2] + size_t(w) * t.stride[3]];
  }
};

struct Sums {
  const Call& c;
  View x, y;
  float* w;
  int bits = significant(c);
  std::vector<float> terms = {};  // of the sum in the making
  bool backwards = turn(c);

  void term(float a, float b) { terms.push_back(kept(a, bits) * kept(b, bits)); }
  float sum() {
    if (backwards) std::reverse(terms.begin(), terms.end());
    float s = 0;
    for (float t : terms) s += t;
    terms.clear();
    return s;
  }
  void put(float& to) { to = c.beta == 0 ? float(c.alpha) * sum() : float(c.alpha) * sum() + float(c.beta) * to; }

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

// each gives every element of a tensor, and its channel, to change.
template <class Change>
void each(const Tensor& t, CUdeviceptr p, Change change) {
  const View view{t, reinterpret_cast<float*>(library::at(p))};
  for (int n = 0; n < t.extent[0]; n++)
    for (int c = 0; c < t.extent[1]; c++)
      for (int h = 0; h < t.extent[2]; h++)
        for (int w = 0; w < t.extent[3]; w++) change(view(n, c, h, w), c);
}

}  // namespace

std::string run(const Call& c) {
  char* w = library::at(c.at_w);
  auto filters = [&](bool write) { return library::access(w, c.w.elements() * sizeof(float), write); };
  const bool reads = c.beta != 0;  // the result, too
  std::string wrong;
  if (c.kind != kInputGradient || reads) wrong = access(c.x, c.at_x, false);
  if (wrong.empty() && (c.kind != kForward || reads)) wrong = access(c.y, c.at_y, false);
  if (wrong.empty() && (c.kind != kWeightGradient || reads)) wrong = filters(false);
  if (wrong.empty() && c.kind == kForward) wrong = access(c.y, c.at_y, true);
  if (wrong.empty() && c.kind == kInputGradient) wrong = access(c.x, c.at_x, true);
  if (wrong.empty() && c.kind == kWeightGradient) wrong = filters(true);
  if (wrong.empty() && c.work_bytes > 0) wrong = use(c.work, c.work_bytes);
  if (!wrong.empty()) return "cudnn: " + wrong;
  auto view = [](const Tensor& t, CUdeviceptr p) { return View{t, reinterpret_cast<float*>(library::at(p))}; };
  Sums sums{c, view(c.x, c.at_x), view(c.y, c.at_y), reinterpret_cast<float*>(w)};
  switch (c.kind) {
    case kForward: sums.forward(); break;
    case kInputGradient: sums.input_gradient(); break;
    case kWeightGradient: sums.weight_gradient(); break;
  }
  return c.bias ? add(c.y, c.at_y, c.bias, 1, 1) : "";
}

std::string add(const Tensor& y, CUdeviceptr at, CUdeviceptr bias, double alpha, double beta) {
  const float* b = reinterpret_cast<const float*>(library::at(bias));
  std::string wrong = library::access(library::at(bias), y.extent[1] * sizeof(float), false);
  if (wrong.empty()) wrong = access(y, at, false);
  if (wrong.empty()) wrong = access(y, at, true);
  if (!wrong.empty()) return "cudnn: " + wrong;
  each(y, at, [&](float& v, int c) { v = float(alpha) * b[c] + float(beta) * v; });
  return "";
}

std::string rectify(const Tensor& y, CUdeviceptr at) {
  std::string wrong = access(y, at, false);
  if (wrong.empty()) wrong = access(y, at, true);
  if (!wrong.empty()) return "cudnn: " + wrong;
  each(y, at, [](float& v, int) { v = v < 0 ? 0 : v; });
  return "";
}

}  // namespace dnn
