// What the 32 lanes of a warp do together: shuffles and products of small matrices. All
// lanes must take part.
#pragma once

namespace dahl {

// shuffle_xor gives the value of lane^mask, shuffle_down that of lane+delta (its own where
// there is none), shuffle that of lane `from`.
#if DAHL_DEVICE
#define DAHL_SHUFFLE(name, builtin, last)                                                      \
  DEVICE int32_t name(int32_t x, int k) { return __nvvm_shfl_sync_##builtin##_i32(0xffffffffu, x, k, last); } \
  DEVICE float name(float x, int k) { return __nvvm_shfl_sync_##builtin##_f32(0xffffffffu, x, k, last); }     \
  DEVICE double name(double x, int k) {                                                        \
    const uint64_t b = bits_of(x);                                                             \
    const uint32_t low = name(int32_t(b), k), high = name(int32_t(b >> 32), k);                \
    return from_bits(uint64_t(high) << 32 | low);                                              \
  }
DAHL_SHUFFLE(shuffle_xor, bfly, 31)
DAHL_SHUFFLE(shuffle_down, down, 31)
DAHL_SHUFFLE(shuffle, idx, 31)
#undef DAHL_SHUFFLE
#else
template <class T>
DEVICE T shuffle(T x, int from) {
  return static_cast<const T*>(host::exchange(&x, sizeof x))[from & 31];
}
template <class T>
DEVICE T shuffle_xor(T x, int mask) {
  return shuffle(x, lane() ^ mask);
}
template <class T>
DEVICE T shuffle_down(T x, int delta) {
  const int from = lane() + delta;
  return shuffle(x, from < 32 ? from : lane());
}
#endif

// round_tf32 rounds to the 10 mantissa bits of tf32, ties away from zero (cvt.rna); the
// pattern is that of a float. A tf32 product that is given other floats drops the 13
// lower bits.
DEVICE uint32_t round_tf32(float x) {
#if DAHL_DEVICE && DAHL_SM >= 80
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
#else
  const uint32_t b = bits_of(x);
  if ((b & 0x7f800000u) == 0x7f800000u) return b & 0xffffe000u;
  return (b + 0x1000u) & 0xffffe000u;
#endif
}

// round_bf16 rounds two floats to bf16, to nearest and ties to even (cvt.rn), the first into
// the lower half.
DEVICE uint32_t round_bf16(float low, float high) {
#if DAHL_DEVICE && DAHL_SM >= 80
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  uint32_t half[2] = {bits_of(low), bits_of(high)};
  for (uint32_t& b : half)
    b = (b & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (b + 0x7fffu + (b >> 16 & 1)) >> 16;
  return half[1] << 16 | half[0];
#endif
}

// The products d += a·b of a warp, from sm_80 on; elsewhere the host's loops stand in for
// them only in the test build. With g = lane/4 and t = lane%4 a lane holds, of the
// row×column extents named:
//
//	mma_tf32  16×8·8×8    a: (g,t) (g+8,t) (g,t+4) (g+8,t+4)      b: (t,g) (t+4,g)
//	mma_bf16  16×16·16×8  a: two columns each, 2t and 2t+1 at (g) (g+8), then 2t+8 … at (g) (g+8)
//	                      b: two rows each, (2t,g) (2t+8,g)
//	mma_f64   8×4·4×8     a: (g,t)  b: (t,g)
//	d of the first two: (g,2t) (g,2t+1) (g+8,2t) (g+8,2t+1); of mma_f64: (g,2t) (g,2t+1)
#if DAHL_SM >= 80
DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if DAHL_DEVICE
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  host::mma_tf32(d, a, b);
#endif
}

DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if DAHL_DEVICE
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  host::mma_bf16(d, a, b);
#endif
}

DEVICE void mma_f64(double (&d)[2], double a, double b) {
#if DAHL_DEVICE
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a), "d"(b));
#else
  host::mma_f64(d, a, b);
#endif
}
#endif

}  // namespace dahl
