// Operands in bfloat16 on their way to kernels that compute in float32, and back. A bfloat16 is the upper half of a
// float. These kernels are bound by memory: a thread moves four elements.
#include "device.h"
#include "rows.h"

namespace dahl {

struct ConvertParams {
  Rows rows;
  Strided y, x;
};

ENTRY(bfloat16_widen, ConvertParams, 256) {
  each_group(p.rows, [&](auto at) {
    const Group<uint16_t> x = load<uint16_t>(p.x, at);
    Group<float> y;
#pragma unroll
    for (int i = 0; i < kGroup; i++) y[i] = from_bits(uint32_t(x[i]) << 16);
    store(p.y, at, y);
  });
}

// The nearest number, and between two the even one, as cvt.rn.bf16 rounds.
ENTRY(bfloat16_narrow, ConvertParams, 256) {
  each_group(p.rows, [&](auto at) {
    const Group<float> x = load<float>(p.x, at);
    Group<uint16_t> y;
#pragma unroll
    for (int i = 0; i < kGroup; i++) {
      const uint32_t bits = bits_of(x[i]);
      y[i] = x[i] != x[i] ? uint16_t(bits >> 16 | 0x40) : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    store(p.y, at, y);
  });
}

}  // namespace dahl
