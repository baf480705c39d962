// Convolutions of images with channels before rows and columns. Rows of the result are
// channels and columns pixels, which follow each other in memory; the weights' gradient
// has filters as rows and taps (c,i,j) as columns.
#include "product_entries.h"

namespace dahl {

template <class T> using Image = Source<T, kWindow, false>;
template <class T> using Map = Source<T, kMap, false>;
using Image32 = Image<float>;
using Image64 = Image<double>;
using Map32 = Map<float>;
using Map64 = Map<double>;

// y and dx: the map is the filters, whose pixels are the taps of the window.
PRODUCT(conv2d_cuda_64x64_f32, Float32, Tile64x64, Map32, false, Image32, true)
PRODUCT(conv2d_cuda_16x128_f32, Float32, Tile16x128, Map32, false, Image32, true)
PRODUCT(conv2d_cuda_64x64_f64, Float64, Tile64x64, Map64, false, Image64, true)

PRODUCT(conv2d_dw_cuda_64x64_f32, Float32, Tile64x64, Map32, false, Image32, false)
PRODUCT(conv2d_dw_cuda_16x32_f32, Float32, Tile16x32, Map32, false, Image32, false)
PRODUCT(conv2d_dw_cuda_64x64_f64, Float64, Tile64x64, Map64, false, Image64, false)
PRODUCT(conv2d_dw_cuda_16x32_f64, Float64, Tile16x32, Map64, false, Image64, false)

}  // namespace dahl
