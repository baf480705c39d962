// Arithmetic of the kernels, the same on both sides. Device code has no mathematical
// library (that would need a CUDA installation), and the approximate instructions of the
// hardware err by more than the bounds of the kernels' tests; so exp and log are series.
#pragma once

namespace dahl {

DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <class T>
DEVICE T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
DEVICE T max(T a, T b) {
  return a < b ? b : a;
}

// sqrt and division are rounded to nearest on both sides.
DEVICE float sqrt(float x) {
#if DAHL_DEVICE
  return __nvvm_sqrt_rn_f(x);
#else
  return __builtin_sqrtf(x);
#endif
}
DEVICE double sqrt(double x) {
#if DAHL_DEVICE
  return __nvvm_sqrt_rn_d(x);
#else
  return __builtin_sqrt(x);
#endif
}

DEVICE float rint(float x) { return __builtin_rintf(x); }
DEVICE double rint(double x) { return __builtin_rint(x); }

// bits_of and from_bits read a number as its IEEE 754 pattern and back.
DEVICE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
DEVICE uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
DEVICE float from_bits(uint32_t b) { return __builtin_bit_cast(float, b); }
DEVICE double from_bits(uint64_t b) { return __builtin_bit_cast(double, b); }

// scale returns x·2^n for a normal power, |n| below the largest exponent.
DEVICE float scale(float x, int n) { return x * from_bits(uint32_t(n + 127) << 23); }
DEVICE double scale(double x, int n) { return x * from_bits(uint64_t(n + 1023) << 52); }

// exp: x = n·ln 2 + r with |r| ≤ ln(2)/2 = 0.3466, ln 2 in two parts so that the reduction is
// exact to the last place, then Taylor's series for e^r. The first term left out is
// 0.3466^8/8! = 5.2e-9 for float (half a unit is 6.0e-8) and 0.3466^14/14! = 4.2e-18 for
// double (1.1e-16): within one unit in the last place. The power is applied in two
// factors so that subnormal results come out.
DEVICE float exp(float x) {
  if (!(x > -104.f)) return x != x ? x : 0.f;
  if (x > 88.73f) return __builtin_huge_valf();
  const float n = rint(x * 1.44269504f);
  float r = fma(n, -0.693359375f, x);
  r = fma(n, 2.12194440e-4f, r);
  float s = 1.f / 5040;
  s = fma(s, r, 1.f / 720);
  s = fma(s, r, 1.f / 120);
  s = fma(s, r, 1.f / 24);
  s = fma(s, r, 1.f / 6);
  s = fma(s, r, 0.5f);
  s = fma(s, r * r, r) + 1.f;
  const int k = int(n);
  return scale(scale(s, k / 2), k - k / 2);
}

DEVICE double exp(double x) {
  if (!(x > -746.)) return x != x ? x : 0.;
  if (x > 709.79) return __builtin_huge_val();
  const double n = rint(x * 1.4426950408889634);
  double r = fma(n, -6.93147180369123816490e-01, x);
  r = fma(n, -1.90821492927058770002e-10, r);
  double s = 1. / 6227020800.;
  s = fma(s, r, 1. / 479001600);
  s = fma(s, r, 1. / 39916800);
  s = fma(s, r, 1. / 3628800);
  s = fma(s, r, 1. / 362880);
  s = fma(s, r, 1. / 40320);
  s = fma(s, r, 1. / 5040);
  s = fma(s, r, 1. / 720);
  s = fma(s, r, 1. / 120);
  s = fma(s, r, 1. / 24);
  s = fma(s, r, 1. / 6);
  s = fma(s, r, 0.5);
  s = fma(s, r * r, r) + 1.;
  const int k = int(n);
  return scale(scale(s, k / 2), k - k / 2);
}

// log of x > 0 (0 gives -∞, less or NaN gives NaN): x = 2^n·(1+f) with 1+f in [√½, √2);
// with s = f/(2+f), log(1+f) = 2s + ⅔s³ + … = f - (f²/2 - s·(f²/2 + R)), where
// R = ⅔s² + ⅖s⁴ + …; |s| ≤ 0.1716. The first term left out of R is below 2/11·s^10 = 4e-9 of
// f for float and 2/23·s^22 = 1.2e-18 for double.
DEVICE float log(float x) {
  if (!(x > 0.f)) return x == 0.f ? -__builtin_huge_valf() : __builtin_nanf("");
  if (x == __builtin_huge_valf()) return x;
  int n = 0;
  if (x < 1.17549435e-38f) x *= 8388608.f, n = -23;
  const uint32_t shifted = bits_of(x) - 0x3f3504f3u;  // √½
  n += int32_t(shifted) >> 23;
  const float f = from_bits((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.f;
  const float s = f / (2.f + f), z = s * s, half = 0.5f * f * f;
  float r = 2.f / 9;
  r = fma(r, z, 2.f / 7);
  r = fma(r, z, 2.f / 5);
  r = fma(r, z, 2.f / 3);
  r *= z;
  const float e = float(n);
  return e * 0.693359375f - ((half - (s * (half + r) + e * -2.12194440e-4f)) - f);
}

DEVICE double log(double x) {
  if (!(x > 0.)) return x == 0. ? -__builtin_huge_val() : __builtin_nan("");
  if (x == __builtin_huge_val()) return x;
  int n = 0;
  if (x < 2.2250738585072014e-308) x *= 18014398509481984., n = -54;
  const uint64_t shifted = bits_of(x) - uint64_t(0x3fe6a09e667f3bcd);  // √½
  n += int(int64_t(shifted) >> 52);
  const double f = from_bits((shifted & uint64_t(0x000fffffffffffff)) + uint64_t(0x3fe6a09e667f3bcd)) - 1.;
  const double s = f / (2. + f), z = s * s, half = 0.5 * f * f;
  double r = 2. / 21;
  r = fma(r, z, 2. / 19);
  r = fma(r, z, 2. / 17);
  r = fma(r, z, 2. / 15);
  r = fma(r, z, 2. / 13);
  r = fma(r, z, 2. / 11);
  r = fma(r, z, 2. / 9);
  r = fma(r, z, 2. / 7);
  r = fma(r, z, 2. / 5);
  r = fma(r, z, 2. / 3);
  r *= z;
  const double e = double(n);
  return e * 6.93147180369123816490e-01 -
         ((half - (s * (half + r) + e * 1.90821492927058770002e-10)) - f);
}

// power returns x^n for n ≥ 0 by squaring: at most 2·log2(n) roundings.
template <class T>
DEVICE T power(T x, uint32_t n) {
  T y = 1;
  for (; n != 0; n >>= 1, x *= x)
    if (n & 1) y *= x;
  return y;
}

// ceil_div returns ⌈a/b⌉ of a ≥ 0, b > 0.
DEVICE int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace dahl
