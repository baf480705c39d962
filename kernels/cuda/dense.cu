// Products of dense layers: y = x·wᵀ, dx = dy·w and dw = dyᵀ·x over row-major matrices.
#include "product_entries.h"

namespace dahl {

template <class T> using Rows = Source<T, kMatrix, true>;
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

PRODUCT_SUMS(dense, true)

#if DAHL_SM >= 80
PRODUCT(dense_tf32_128x128_f32, TF32, Tensor128x128, Rows32, true, Rows32, true)
PRODUCT(dense_tf32_64x64_f32, TF32, Tensor64x64, Rows32, true, Rows32, true)
PRODUCT(dense_tf32_128x32_f32, TF32, Tensor128x32, Rows32, true, Rows32, true)
PRODUCT(dense_dx_tf32_128x128_f32, TF32, Tensor128x128, Rows32, true, Rows32, false)
PRODUCT(dense_dx_tf32_64x64_f32, TF32, Tensor64x64, Rows32, true, Rows32, false)
PRODUCT(dense_dw_tf32_128x128_f32, TF32, Tensor128x128, Rows32, false, Rows32, false)
PRODUCT(dense_dw_tf32_64x64_f32, TF32, Tensor64x64, Rows32, false, Rows32, false)

PRODUCT(dense_bf16_128x128_f32, BF16, Tensor128x128, Rows32, true, Rows32, true)
PRODUCT(dense_bf16_64x64_f32, BF16, Tensor64x64, Rows32, true, Rows32, true)
PRODUCT(dense_bf16_128x32_f32, BF16, Tensor128x32, Rows32, true, Rows32, true)
PRODUCT(dense_dx_bf16_128x128_f32, BF16, Tensor128x128, Rows32, true, Rows32, false)
PRODUCT(dense_dx_bf16_64x64_f32, BF16, Tensor64x64, Rows32, true, Rows32, false)
PRODUCT(dense_dw_bf16_128x128_f32, BF16, Tensor128x128, Rows32, false, Rows32, false)
PRODUCT(dense_dw_bf16_64x64_f32, BF16, Tensor64x64, Rows32, false, Rows32, false)
#endif

}  // namespace dahl
