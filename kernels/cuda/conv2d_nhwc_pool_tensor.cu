// The products of conv2d_nhwc_pool.cu on tensor cores, which sm_75 has not for float32.
#include "product_entries.h"

#if DAHL_SM >= 80
namespace dahl {

using Image = Source<float, kWindow>;
using Pooled = Source<float, kUnpool>;

PRODUCT(conv2d_nhwc_pool_dw_tf32_64x64_f32, TF32, Tensor64x64, Image, false, Pooled, false)
PRODUCT(conv2d_nhwc_pool_dw_tf32_32x32_f32, TF32, Tensor32x32, Image, false, Pooled, false)

PRODUCT(conv2d_nhwc_pool_dw_bf16_64x64_f32, BF16, Tensor64x64, Image, false, Pooled, false)
PRODUCT(conv2d_nhwc_pool_dw_bf16_32x32_f32, BF16, Tensor32x32, Image, false, Pooled, false)

}  // namespace dahl
#endif
