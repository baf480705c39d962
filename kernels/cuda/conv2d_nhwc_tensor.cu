// The products of conv2d_nhwc.cu on tensor cores, which sm_75 has not for float32.
#include "product_entries.h"

#if DAHL_SM >= 80
namespace dahl {

using Image = Source<float, kWindow>;
using Map = Source<float, kMap>;

PRODUCT(conv2d_nhwc_tf32_64x64_f32, TF32, Tensor64x64, Image, true, Map, false)
PRODUCT(conv2d_nhwc_tf32_128x32_f32, TF32, Tensor128x32, Image, true, Map, false)
PRODUCT(conv2d_nhwc_dw_tf32_64x64_f32, TF32, Tensor64x64, Image, false, Map, false)
PRODUCT(conv2d_nhwc_dw_tf32_32x32_f32, TF32, Tensor32x32, Image, false, Map, false)

PRODUCT(conv2d_nhwc_bf16_64x64_f32, BF16, Tensor64x64, Image, true, Map, false)
PRODUCT(conv2d_nhwc_bf16_128x32_f32, BF16, Tensor128x32, Image, true, Map, false)
PRODUCT(conv2d_nhwc_dw_bf16_64x64_f32, BF16, Tensor64x64, Image, false, Map, false)
PRODUCT(conv2d_nhwc_dw_bf16_32x32_f32, BF16, Tensor32x32, Image, false, Map, false)

}  // namespace dahl
#endif
