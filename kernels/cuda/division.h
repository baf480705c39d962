// Division without the machine's, which takes some twenty instructions.
#pragma once

#include "device.h"

namespace dahl {

// Division by a number fixed for the launch, of dividends below 2^31:
// x/d = x·multiplier >> shift, with multiplier = ⌈2^shift/d⌉ < 2^32 (Granlund and
// Montgomery, Division by Invariant Integers using Multiplication, 1994).
struct Division {
  uint32_t divisor, multiplier, shift;

  DEVICE int quotient(int x) const { return int(uint64_t(uint32_t(x)) * multiplier >> shift); }
  DEVICE int split(int x, int& rest) const {
    const int q = quotient(x);
    rest = x - q * int(divisor);
    return q;
  }
};

}  // namespace dahl
