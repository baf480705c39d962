// Products of dense layers: y = x·wᵀ, dx = dy·w and dw = dyᵀ·x over row-major matrices.
#include "product_entries.h"

namespace dahl {

template <class T> using Rows = Source<T, kMatrix>;
using Rows32 = Rows<float>;
using Rows64 = Rows<double>;

PRODUCT(dense_cuda_128x64_f32, Float32, Tile128x64, Rows32, true, Rows32, true)
PRODUCT(dense_cuda_64x64_f32, Float32, Tile64x64, Rows32, true, Rows32, true)
PRODUCT(dense_cuda_128x16_f32, Float32, Tile128x16, Rows32, true, Rows32, true)
PRODUCT(dense_cuda_64x64_f64, Float64, Tile64x64, Rows64, true, Rows64, true)

PRODUCT(dense_dx_cuda_128x64_f32, Float32, Tile128x64, Rows32, true, Rows32, false)
PRODUCT(dense_dx_cuda_64x64_f32, Float32, Tile64x64, Rows32, true, Rows32, false)
PRODUCT(dense_dx_cuda_64x64_f64, Float64, Tile64x64, Rows64, true, Rows64, false)

PRODUCT(dense_dw_cuda_128x64_f32, Float32, Tile128x64, Rows32, false, Rows32, false)
PRODUCT(dense_dw_cuda_64x64_f32, Float32, Tile64x64, Rows32, false, Rows32, false)
PRODUCT(dense_dw_cuda_16x128_f32, Float32, Tile16x128, Rows32, false, Rows32, false)
PRODUCT(dense_dw_cuda_64x64_f64, Float64, Tile64x64, Rows64, false, Rows64, false)

}  // namespace dahl
