// Matrix products of a warp: every lane computes its part of d from the fragments of all
// lanes, laid out as in kernels/cuda/device_warp.h.
#include <cstring>

#include "block.h"

namespace host {
namespace {

float as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

struct Fragments {
  uint32_t a[4], b[2];
};

// product adds to the lane's part of the 16×8 d; a(f, row, k) and b(f, k, column) pick the
// elements out of the fragments.
template <class A, class B>
void product(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int extent, A pick_a, B pick_b) {
  Fragments mine;
  memcpy(mine.a, a, sizeof a);
  memcpy(mine.b, b, sizeof b);
  const auto* all = static_cast<const Fragments*>(exchange(&mine, sizeof mine));
  for (int i = 0; i < 4; i++) {
    const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
    double sum = d[i];
    for (int k = 0; k < extent; k++) sum += double(pick_a(all, row, k)) * double(pick_b(all, k, column));
    d[i] = float(sum);
  }
}

// half returns one of the two bf16 of a register.
float half(uint32_t pair, int which) { return as_float(which ? pair & 0xffff0000u : pair << 16); }

float tf32(uint32_t bits) { return as_float(bits & 0xffffe000u); }

}  // namespace

void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  product(
      d, a, b, 8,
      [](const Fragments* f, int row, int k) { return tf32(f[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]); },
      [](const Fragments* f, int k, int column) { return tf32(f[column * 4 + k % 4].b[k / 4]); });
}

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  product(
      d, a, b, 16,
      [](const Fragments* f, int row, int k) { return half(f[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k % 2); },
      [](const Fragments* f, int k, int column) { return half(f[column * 4 + k % 8 / 2].b[k / 8], k % 2); });
}

void mma_f64(double (&d)[2], double a, double b) {
  const double mine[2] = {a, b};
  const auto* all = static_cast<const double(*)[2]>(exchange(mine, sizeof mine));
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 4; k++) d[i] = __builtin_fma(all[lane() / 4 * 4 + k][0], all[(lane() % 4 * 2 + i) * 4 + k][1], d[i]);
}

}  // namespace host
