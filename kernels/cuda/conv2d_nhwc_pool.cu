// The gradient of the weights of convolutions that are pooled, as in conv2d_nhwc.cu but from a map
// that is known by its pooled form; and pooling windows of any size, scanned.
#include "product_entries.h"

namespace dahl {

template <class T> using Image = Source<T, kWindow>;
template <class T> using Pooled = Source<T, kUnpool>;
using Image32 = Image<float>;
using Image64 = Image<double>;
using Pooled32 = Pooled<float>;
using Pooled64 = Pooled<double>;

PRODUCT(conv2d_nhwc_pool_dw_cuda_64x64_f32, Float32, Tile64x64, Image32, false, Pooled32, false)
PRODUCT(conv2d_nhwc_pool_dw_cuda_64x32_f32, Float32, Tile64x32, Image32, false, Pooled32, false)
PRODUCT(conv2d_nhwc_pool_dw_cuda_16x32_f32, Float32, Tile16x32, Image32, false, Pooled32, false)
PRODUCT(conv2d_nhwc_pool_dw_cuda_16x16_f32, Float32, Tile16x16, Image32, false, Pooled32, false)
PRODUCT(conv2d_nhwc_pool_dw_cuda_64x64_f64, Float64, Tile64x64, Image64, false, Pooled64, false)
PRODUCT(conv2d_nhwc_pool_dw_cuda_16x32_f64, Float64, Tile16x32, Image64, false, Pooled64, false)

// PooledScan is mirrored by kernels.pooledScan: pooling windows of any size over the map z.
// Strides are those of z, y and index.
struct PooledScan {
  uint64_t z, y, index;
  uint64_t outer[3];
  int32_t middle[3], inner[3];
  Division rows, columns, channels;
  int32_t elements, size, step;
};

// scan gives every element of y a thread; neighbours have neighbouring channels.
template <class T>
DEVICE void scan(const PooledScan& p) {
  const int element = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (element >= p.elements) return;
  int f, u, v;
  const int n = p.rows.split(p.columns.split(p.channels.split(element, f), v), u);
  const auto at = [&](int map, int row, int column) {
    return int64_t(n) * int64_t(p.outer[map]) + int64_t(row) * p.middle[map] + int64_t(column) * p.inner[map] + f;
  };
  T most = 0;
  int position = 255;
  for (int i = 0; i < p.size; i++) {
    for (int j = 0; j < p.size; j++) {
      const T z = global<const T>(p.z)[at(0, u * p.step + i, v * p.step + j)];
      if (z > most || (z != z && most == most)) most = z, position = i * p.size + j;
    }
  }
  global<T>(p.y)[at(1, u, v)] = most;
  global<uint8_t>(p.index)[at(2, u, v)] = uint8_t(position);
}

ENTRY(conv2d_nhwc_pool_cuda_scan_f32, PooledScan, 256) { scan<float>(p); }
ENTRY(conv2d_nhwc_pool_cuda_scan_f64, PooledScan, 256) { scan<double>(p); }

}  // namespace dahl
