// Arithmetic of the kernels, the same on both sides. Device code has no mathematical
// library (that would need a CUDA installation), and the approximate instructions of the
// hardware err by more than the bounds of the kernels' tests; so exp and log are series, and
// what is made of them.
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

DEVICE float abs(float x) { return __builtin_fabsf(x); }
DEVICE double abs(double x) { return __builtin_fabs(x); }
DEVICE float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
DEVICE double copysign(double x, double sign) { return __builtin_copysign(x, sign); }

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

// Power is e^x = 2^n·(1 + p): x = n·ln 2 + r with |r| ≤ ln(2)/2 = 0.3466, ln 2 in two parts
// so that the reduction is exact to the last place, then Taylor's series for p = e^r - 1.
// The first term left out is 0.3466^8/8! = 5.2e-9 for float (half a unit is 6.0e-8) and
// 0.3466^14/14! = 4.2e-18 for double (1.1e-16): within one unit in the last place.
template <class T>
struct Power {
  T p;
  int n;
};

DEVICE Power<float> power_of_e(float x) {
  const float n = rint(x * 1.44269504f);
  float r = fma(n, -0.693359375f, x);
  r = fma(n, 2.12194440e-4f, r);
  float s = 1.f / 5040;
  s = fma(s, r, 1.f / 720);
  s = fma(s, r, 1.f / 120);
  s = fma(s, r, 1.f / 24);
  s = fma(s, r, 1.f / 6);
  s = fma(s, r, 0.5f);
  return {fma(s, r * r, r), int(n)};
}

DEVICE Power<double> power_of_e(double x) {
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
  return {fma(s, r * r, r), int(n)};
}

// exp applies the power of two in two factors so that subnormal results come out.
template <class T>
DEVICE T scaled(const Power<T>& e) {
  return scale(scale(e.p + T(1), e.n / 2), e.n - e.n / 2);
}

DEVICE float exp(float x) {
  if (!(x > -104.f)) return x != x ? x : 0.f;
  if (x > 88.73f) return __builtin_huge_valf();
  return scaled(power_of_e(x));
}

DEVICE double exp(double x) {
  if (!(x > -746.)) return x != x ? x : 0.;
  if (x > 709.79) return __builtin_huge_val();
  return scaled(power_of_e(x));
}

// sigmoid is 1/(1 + e^-x), by the exponential of -|x|, which does not overflow.
template <class T>
DEVICE T sigmoid(T x) {
  const T e = exp(-abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

// tanh |x| is -m/(2+m), m = e^(-2|x|) - 1 = 2^n·p + (2^n - 1), of which nothing cancels: n = 0
// leaves p, and otherwise 2^n - 1 is the greater in size. Beyond 20 it is 1.
template <class T>
DEVICE T tanh(T x) {
  const Power<T> e = power_of_e(T(-2) * min(abs(x), T(20)));
  const T m = scale(e.p, e.n) + (scale(T(1), e.n) - T(1));
  return copysign(m / (T(2) + m), x);
}

// below is Φ(-|x|), Φ the distribution of the standard normal, and density its φ(x). With
// t = k/(k+|x|) the quotient Φ(-|x|)/(φ(x)·t) is smooth from ∞ (t = 0) to 0 (t = 1): a polynomial
// in 2t-1 (after Shepherd and Laframboise, Chebyshev approximation of (1+2x)exp(x²)erfc x, 1981).
// Its coefficients, divided by √(2π), are those of the interpolation at Chebyshev's points; it
// misses by 1.1e-8 of itself for float (half a unit is 6.0e-8) and 1.3e-17 for double. What x²
// loses by rounding goes into the exponential as a factor, so that both are within some units
// as far as they are not subnormal.
template <class T>
struct Normal {
  T below, density;
};

DEVICE float mills(float x) {
  constexpr float c[] = {0.212690307f,      0.161589117f,      0.0901214451f,   0.0331568701f,
                         0.00497315964f,    -0.00184720974f,   -0.000908281686f, 0.000119362457f,
                         0.00012934112f,    -9.89577166e-6f,   -1.42191112e-5f};
  const float t = 3.5f / (3.5f + x), s = 2.f * t - 1.f;
  float q = c[10];
#pragma unroll
  for (int i = 9; i >= 0; i--) q = fma(q, s, c[i]);
  return q * t;
}

DEVICE double mills(double x) {
  constexpr double c[] = {0.161350798345098726, 0.137597753959542257, 0.0993817576849339959,
                          0.059828319984772468, 0.0290790267434043964, 0.0106555433933915036,
                          0.00240855625426385574, -0.0000223779457750819623, -0.000239520604293310617,
                          -0.0000620692269082716788, 0.0000137004114405813615, 0.0000101702469601356155,
                          -3.50888064429132424e-7, -1.45412628474906212e-6, -5.41684607488082239e-8,
                          2.20640533243248467e-7, 1.13399860818554285e-8, -3.65551092659730151e-8,
                          -7.6255286604914098e-10, 6.20983304235919698e-9, -1.3400325244933275e-10,
                          -9.14006904905313963e-10, 3.10293588197502994e-11, 8.02692383659546545e-11};
  const double t = 4.75 / (4.75 + x), s = 2. * t - 1.;
  double q = c[23];
#pragma unroll
  for (int i = 22; i >= 0; i--) q = fma(q, s, c[i]);
  return q * t;
}

template <class T>
DEVICE Normal<T> normal(T x) {
  x = min(abs(x), T(45));  // beyond, all is 0
  const T square = x * x, e = exp(T(-0.5) * square) * (T(1) - T(0.5) * fma(x, x, -square));
  return {e * mills(x), e * T(0.3989422804014327)};
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

// turn_by is the cosine and the sine of an angle of at most some million: less n quarters of a turn, in two parts of π/2 of which n times the
// first is exact, it is at most π/4. The first terms left out of the series are 0.79^19/19! = 9e-20 and 0.79^18/18! = 2e-18.
struct Turn {
  double cos, sin;
};

DEVICE Turn turn_by(double x) {
  const double n = rint(x * 0.63661977236758134308);
  double r = fma(n, -1.57079632673412561417e+00, x);
  r = fma(n, -6.07710050650619224932e-11, r);
  const double z = r * r;
  double s = 1. / 355687428096000., c = 1. / 20922789888000.;
  s = fma(s, z, -1. / 1307674368000.);
  s = fma(s, z, 1. / 6227020800.);
  s = fma(s, z, -1. / 39916800.);
  s = fma(s, z, 1. / 362880.);
  s = fma(s, z, -1. / 5040.);
  s = fma(s, z, 1. / 120.);
  s = fma(s, z, -1. / 6.);
  c = fma(c, z, -1. / 87178291200.);
  c = fma(c, z, 1. / 479001600.);
  c = fma(c, z, -1. / 3628800.);
  c = fma(c, z, 1. / 40320.);
  c = fma(c, z, -1. / 720.);
  c = fma(c, z, 1. / 24.);
  c = fma(c, z, -0.5);
  c = fma(c, z, 1.);
  s = fma(s * z, r, r);
  const int32_t quarter = int32_t(n) & 3;
  const double cos = quarter & 1 ? s : c, sin = quarter & 1 ? c : s;
  return {quarter == 1 || quarter == 2 ? -cos : cos, quarter >= 2 ? -sin : sin};
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
