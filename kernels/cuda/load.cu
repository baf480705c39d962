// Building a batch: the rows of a data set that an index list names, bytes divided by a
// number, or as they are. Quotients are rounded to nearest, as on CPUs. A byte is read for each real
// written, so the writes are what must be wide: 16 bytes per thread where rows allow it.
#include "rows.h"

namespace dahl {

struct LoadParams {
  Rows rows;  // the first dimension is samples
  Strided x, samples;
  uint64_t index;
  double divisor;
};

template <class T, class S>
DEVICE void load_batch(const LoadParams& p) {
  const int32_t* index = global<const int32_t>(p.index);
  const T divisor = T(p.divisor);
  each_group(p.rows, [&](auto at) {
    auto from = at;
    from.row[0] = index[at.row[0]];
    const Group<S> sample = load<S>(p.samples, from);
    Group<T> x;
#pragma unroll
    for (int i = 0; i < kGroup; i++) x[i] = sizeof(S) == 1 ? T(sample[i]) / divisor : T(sample[i]);
    store(p.x, at, x);
  });
}

ENTRY(load_f32, LoadParams, 256) { load_batch<float, uint8_t>(p); }
ENTRY(load_f64, LoadParams, 256) { load_batch<double, uint8_t>(p); }

// Whatever has four bytes is copied as float.
ENTRY(load_rows_f32, LoadParams, 256) { load_batch<float, float>(p); }
ENTRY(load_rows_f64, LoadParams, 256) { load_batch<double, double>(p); }

struct LoadNHWCParams {
  uint64_t x, images, index;
  double divisor;
  int64_t x_stride[3];      // samples, rows, columns; channels are side by side
  int64_t image_stride[3];  // samples, channels, rows; columns are side by side
  int32_t samples, rows, columns, channels;
};

// A thread writes one element of some samples, four at a time so that their loads, of a byte
// each, are under way together. Threads side by side write side by side and read, of each
// channel, bytes side by side; images have so few channels that these are in the cache
// when the threads beside want theirs.
constexpr int kSamples = 4;

template <class T>
DEVICE void load_nhwc(const LoadNHWCParams& p) {
  const T divisor = T(p.divisor);
  const int32_t per_sample = p.rows * p.columns * p.channels;
  const int32_t e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= per_sample) return;
  const int32_t pixel = e / p.channels, c = e - pixel * p.channels;
  const int32_t h = pixel / p.columns, w = pixel - h * p.columns;
  T* x = global<T>(p.x) + (p.x_stride[1] * h + p.x_stride[2] * w + c);
  const uint8_t* image = global<const uint8_t>(p.images) + (p.image_stride[1] * c + p.image_stride[2] * h + w);
  const int32_t* index = global<const int32_t>(p.index);
  for (int32_t first = blockIdx.y * kSamples; first < p.samples; first += gridDim.y * kSamples) {
    uint8_t value[kSamples] = {};
#pragma unroll
    for (int i = 0; i < kSamples; i++)
      if (first + i < p.samples) value[i] = image[p.image_stride[0] * index[first + i]];
#pragma unroll
    for (int i = 0; i < kSamples; i++)
      if (first + i < p.samples) x[p.x_stride[0] * (first + i)] = T(value[i]) / divisor;
  }
}

ENTRY(load_nhwc_f32, LoadNHWCParams, 256) { load_nhwc<float>(p); }
ENTRY(load_nhwc_f64, LoadNHWCParams, 256) { load_nhwc<double>(p); }

}  // namespace dahl
