// The products of dense.cu on tensor cores, which sm_75 has not for float32.
#include "product_entries.h"

#if DAHL_SM >= 80
namespace dahl {

using Rows = Source<float, kMatrix>;

PRODUCT(dense_tf32_128x128_f32, TF32, Tensor128x128, Rows, true, Rows, true)
PRODUCT(dense_tf32_64x64_f32, TF32, Tensor64x64, Rows, true, Rows, true)
PRODUCT(dense_tf32_128x32_f32, TF32, Tensor128x32, Rows, true, Rows, true)
PRODUCT(dense_dx_tf32_128x128_f32, TF32, Tensor128x128, Rows, true, Rows, false)
PRODUCT(dense_dx_tf32_64x64_f32, TF32, Tensor64x64, Rows, true, Rows, false)
PRODUCT(dense_dw_tf32_128x128_f32, TF32, Tensor128x128, Rows, false, Rows, false)
PRODUCT(dense_dw_tf32_64x64_f32, TF32, Tensor64x64, Rows, false, Rows, false)

PRODUCT(dense_bf16_128x128_f32, BF16, Tensor128x128, Rows, true, Rows, true)
PRODUCT(dense_bf16_64x64_f32, BF16, Tensor64x64, Rows, true, Rows, true)
PRODUCT(dense_bf16_128x32_f32, BF16, Tensor128x32, Rows, true, Rows, true)
PRODUCT(dense_dx_bf16_128x128_f32, BF16, Tensor128x128, Rows, true, Rows, false)
PRODUCT(dense_dx_bf16_64x64_f32, BF16, Tensor64x64, Rows, true, Rows, false)
PRODUCT(dense_dw_bf16_128x128_f32, BF16, Tensor128x128, Rows, false, Rows, false)
PRODUCT(dense_dw_bf16_64x64_f32, BF16, Tensor64x64, Rows, false, Rows, false)

}  // namespace dahl
#endif
