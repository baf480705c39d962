// Pooling: a thread computes one element, and threads side by side have elements
// side by side. Where a window begins in x follows from strides that the distance of windows has
// been multiplied into. Each element of y reads its window, mostly 2×2 and not overlapping, so
// that bytes are moved once; the gradients gather: each element of dx looks for the windows that
// it lies in, in their order, which gives the sums of the reference without atomics.
#include "division.h"

namespace dahl {

// Extents are those of the last three dimensions of a map, in the order in which elements
// lie. It is mirrored by kernels.extentsParams.
struct Extents {
  Division extent1, extent2, extent3;
};

// Strides are in elements; those within a sample are 32 bits wide, which saves a third of the
// registers. It is mirrored by kernels.stridesParams.
struct Strides {
  int64_t sample;
  int32_t inner[3];
};

// Window is the form of the windows, and how they lie over an image: the first begins top rows
// above it and left columns to its left, where the image is behind its edge. It is mirrored by
// kernels.windowForm.
struct Window {
  int32_t height, width, step, top, left;
};

// Reach is a range of positions, lo to hi without hi.
struct Reach {
  int32_t lo, hi;
};

// reach is the positions in a window that begins at a row of the image and lie in the image.
DEVICE Reach reach(int32_t first, int32_t size, int32_t count) { return {max(0, -first), min(size, count - first)}; }

// WindowParams is mirrored by kernels.windowParams.
struct WindowParams {
  uint64_t y, index, x;      // no index in average pooling
  Strides y_stride, index_stride;
  Strides x_stride;          // from window to window
  int32_t x_row, x_column;   // within a window
  Extents extents;           // of y
  int32_t total;
  Window window;
  int32_t rows, columns;     // of x
};

struct Position {
  int32_t at[4];
};

DEVICE Position position(const Extents& e, int32_t element) {
  Position p;
  p.at[0] = e.extent1.split(e.extent2.split(e.extent3.split(element, p.at[3]), p.at[2]), p.at[1]);
  return p;
}

DEVICE int64_t offset(const Strides& s, const Position& p) {
  return s.sample * p.at[0] + (s.inner[0] * p.at[1] + s.inner[1] * p.at[2] + s.inner[2] * p.at[3]);
}

// each_pixel calls f(where in x, position in the window) for the pixels of a window that lie in
// the image, in row-major order.
template <class F>
DEVICE void each_pixel(const WindowParams& p, const Position& at, F f) {
  const Window& w = p.window;
  const int32_t row = at.at[1] * w.step - w.top, column = at.at[2] * w.step - w.left;
  const Reach rows = reach(row, w.height, p.rows), columns = reach(column, w.width, p.columns);
  const int64_t from = offset(p.x_stride, at) - (int64_t(w.top) * p.x_row + int64_t(w.left) * p.x_column);
  for (int32_t i = rows.lo; i < rows.hi; i++)
    for (int32_t j = columns.lo; j < columns.hi; j++) f(from + (p.x_row * i + p.x_column * j), i * w.width + j);
}

// The first of equal maxima is taken, and NaN wins.
template <class T>
DEVICE void maxpool(const WindowParams& p) {
  const int32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= p.total) return;
  const Position at = position(p.extents, element);
  const T* x = global<const T>(p.x);
  T most = 0;
  int32_t where = -1;
  each_pixel(p, at, [&](int64_t from, int32_t i) {
    const T v = x[from];
    if (where < 0 || v > most || (v != v && most == most)) most = v, where = i;
  });
  global<T>(p.y)[offset(p.y_stride, at)] = most;
  global<uint8_t>(p.index)[offset(p.index_stride, at)] = uint8_t(where);
}

ENTRY(maxpool_f32, WindowParams, 256) { maxpool<float>(p); }
ENTRY(maxpool_f64, WindowParams, 256) { maxpool<double>(p); }

template <class T>
DEVICE void avgpool(const WindowParams& p) {
  const int32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= p.total) return;
  const Position at = position(p.extents, element);
  const T* x = global<const T>(p.x);
  T sum = 0;
  each_pixel(p, at, [&](int64_t from, int32_t) { sum += x[from]; });
  global<T>(p.y)[offset(p.y_stride, at)] = sum / T(int64_t(p.window.height) * p.window.width);
}

ENTRY(avgpool_f32, WindowParams, 256) { avgpool<float>(p); }
ENTRY(avgpool_f64, WindowParams, 256) { avgpool<double>(p); }

// SpreadParams is mirrored by kernels.spreadParams.
struct SpreadParams {
  uint64_t dx, dy, index;
  Extents extents;  // of dx
  Division step;
  int32_t total;
  Window window;
  int32_t rows, columns;  // windows
  Strides dx_stride, dy_stride, index_stride;
};

// windows is those along one direction that the pixel lies in that is h behind the beginning of
// the first.
DEVICE Reach windows(int32_t h, int32_t size, const Division& step, int32_t count) {
  if (h < 0) return {0, 0};
  return {h < size ? 0 : step.quotient(h - size) + 1, min(step.quotient(h) + 1, count)};
}

// each_window calls f(where in dy, where in index, position in the window) for the windows
// that an element of dx lies in, in the order of dy, and returns where the element lies.
template <class F>
DEVICE int64_t each_window(const SpreadParams& p, int32_t element, F f) {
  const Position at = position(p.extents, element);
  const int32_t h = at.at[1] + p.window.top, w = at.at[2] + p.window.left;
  const Reach rows = windows(h, p.window.height, p.step, p.rows), columns = windows(w, p.window.width, p.step, p.columns);
  const int32_t step = p.step.divisor;
  for (int32_t u = rows.lo; u < rows.hi; u++)
    for (int32_t v = columns.lo; v < columns.hi; v++) {
      const Position window = {{at.at[0], u, v, at.at[3]}};
      f(offset(p.dy_stride, window), offset(p.index_stride, window), (h - u * step) * p.window.width + w - v * step);
    }
  return offset(p.dx_stride, at);
}

// Index 255 is no position, so it passes nothing.
template <class T>
DEVICE void maxpool_gradient(const SpreadParams& p) {
  const int32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= p.total) return;
  const T* dy = global<const T>(p.dy);
  const uint8_t* index = global<const uint8_t>(p.index);
  T sum = 0;
  const int64_t to = each_window(p, element, [&](int64_t from, int64_t where, int32_t position) {
    if (index[where] == position) sum += dy[from];
  });
  global<T>(p.dx)[to] = sum;
}

ENTRY(maxpool_dx_f32, SpreadParams, 256) { maxpool_gradient<float>(p); }
ENTRY(maxpool_dx_f64, SpreadParams, 256) { maxpool_gradient<double>(p); }

template <class T>
DEVICE void avgpool_gradient(const SpreadParams& p) {
  const int32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= p.total) return;
  const T* dy = global<const T>(p.dy);
  const T pixels = T(int64_t(p.window.height) * p.window.width);
  T sum = 0;
  const int64_t to = each_window(p, element, [&](int64_t from, int64_t, int32_t) { sum += dy[from] / pixels; });
  global<T>(p.dx)[to] = sum;
}

ENTRY(avgpool_dx_f32, SpreadParams, 256) { avgpool_gradient<float>(p); }
ENTRY(avgpool_dx_f64, SpreadParams, 256) { avgpool_gradient<double>(p); }

// GlobalParams is mirrored by kernels.globalParams. An average of all pixels is one of a window that
// is the image. Each pixel gets its share of it.
struct GlobalParams {
  uint64_t dx, dy;
  Strides dx_stride, dy_stride;  // dy_stride is 0 along rows and columns
  Extents extents;               // of dx
  int32_t total;
  double pixels;
};

template <class T>
DEVICE void globalavgpool_gradient(const GlobalParams& p) {
  const int32_t element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= p.total) return;
  const Position at = position(p.extents, element);
  global<T>(p.dx)[offset(p.dx_stride, at)] = global<const T>(p.dy)[offset(p.dy_stride, at)] / T(p.pixels);
}

ENTRY(globalavgpool_dx_f32, GlobalParams, 256) { globalavgpool_gradient<float>(p); }
ENTRY(globalavgpool_dx_f64, GlobalParams, 256) { globalavgpool_gradient<double>(p); }

}  // namespace dahl
