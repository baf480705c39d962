// The generator of random numbers that counts, see kernels.dropout.
#pragma once

#include "device.h"

namespace dahl {

struct Words {
  uint32_t w[4];
  DEVICE uint32_t at(uint32_t i) const { return i == 0 ? w[0] : i == 1 ? w[1] : i == 2 ? w[2] : w[3]; }
};

// philox is the generator Philox 4×32 of ten rounds.
DEVICE Words philox(uint64_t key, Words c) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int i = 0; i < 10; i++) {
    const uint64_t a = uint64_t(c.w[0]) * 0xD2511F53u, b = uint64_t(c.w[2]) * 0xCD9E8D57u;
    c = {{uint32_t(b >> 32) ^ c.w[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c.w[3] ^ k1, uint32_t(a)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace dahl
