// Convolutions of images with channels last, as products of windows of the image with the
// filters. Rows of the result are pixels and columns channels; the weights' gradient has
// taps as rows and filters as columns, and sums over the pixels.
#include "product_entries.h"

namespace dahl {

template <class T> using Image = Source<T, kWindow>;
template <class T> using Map = Source<T, kMap>;
using Image32 = Image<float>;
using Image64 = Image<double>;
using Map32 = Map<float>;
using Map64 = Map<double>;

// y and dx: the map is the filters, whose pixels are taps of the window.
PRODUCT(conv2d_nhwc_cuda_128x64_f32, Float32, Tile128x64, Image32, true, Map32, false)
PRODUCT(conv2d_nhwc_cuda_64x64_f32, Float32, Tile64x64, Image32, true, Map32, false)
PRODUCT(conv2d_nhwc_cuda_128x32_f32, Float32, Tile128x32, Image32, true, Map32, false)
PRODUCT(conv2d_nhwc_cuda_128x16_f32, Float32, Tile128x16, Image32, true, Map32, false)
PRODUCT(conv2d_nhwc_cuda_64x64_f64, Float64, Tile64x64, Image64, true, Map64, false)

PRODUCT(conv2d_nhwc_dw_cuda_64x64_f32, Float32, Tile64x64, Image32, false, Map32, false)
PRODUCT(conv2d_nhwc_dw_cuda_64x32_f32, Float32, Tile64x32, Image32, false, Map32, false)
PRODUCT(conv2d_nhwc_dw_cuda_16x32_f32, Float32, Tile16x32, Image32, false, Map32, false)
PRODUCT(conv2d_nhwc_dw_cuda_16x16_f32, Float32, Tile16x16, Image32, false, Map32, false)
PRODUCT(conv2d_nhwc_dw_cuda_64x64_f64, Float64, Tile64x64, Image64, false, Map64, false)
PRODUCT(conv2d_nhwc_dw_cuda_16x32_f64, Float64, Tile16x32, Image64, false, Map64, false)

}  // namespace dahl
