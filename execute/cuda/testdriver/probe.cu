// Kernels that test device.h and the test driver, not operations: every primitive once, and
// one kernel for every fault that the test driver must find.
#include "device.h"

namespace dahl {

struct ProbeParams {
  uint64_t x, y, z;
  int32_t n, mode;
};

// y[i] = x[i] + mode for i < n.
ENTRY(probe_add, ProbeParams, 256) {
  const float* x = global<const float>(p.x);
  float* y = global<float>(p.y);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) y[i] = x[i] + float(p.mode);
}

// y[block] = Σ of the block's 128 elements of x, by shuffles and shared memory.
ENTRY(probe_sum, ProbeParams, 128) {
  SHARED(float, partial, [4]);
  const int i = blockIdx.x * 128 + threadIdx.x;
  float s = i < p.n ? ldg(global<const float>(p.x) + i) : 0.f;
  for (int mask = 16; mask > 0; mask /= 2) s += shuffle_xor(s, mask);
  if (lane() == 0) partial[threadIdx.x / 32] = s;
  sync();
  if (threadIdx.x == 0) global<float>(p.y)[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
}

// y = x reversed within blocks of 4·blockDim elements, by way of dynamic shared memory and
// asynchronous copies of 16 bytes; elements from n on are 0.
ENTRY(probe_reverse, ProbeParams, 256) {
  DYNAMIC_SHARED(float, tile);
  const int base = blockIdx.x * blockDim.x * 4, mine = threadIdx.x * 4, extent = blockDim.x * 4;
  const int left = p.n - base - mine, valid = left <= 0 ? 0 : left < 4 ? left * 4 : 16;
  copy_async<16>(tile + mine, global<const float>(p.x) + base + mine, valid);
  copy_commit();
  copy_wait<0>();
  sync();
  float* y = global<float>(p.y) + base;
  for (int i = threadIdx.x; i < extent; i += blockDim.x)
    if (base + i < p.n) y[i] = tile[extent - 1 - i];
}

// y[i], in double, of the float x[i], from mode 7 on of the double x[i]: see math_of.
constexpr int kFunctions = 7;

template <class T>
DEVICE double math_of(int mode, T x) {
  switch (mode) {
    case 0: return exp(x);
    case 1: return log(x);
    case 2: return sqrt(x);
    case 3: return power(x, 11);
    case 4: return tanh(x);
    case 5: return sigmoid(x);
    default: return normal(x).below;
  }
}

ENTRY(probe_math, ProbeParams, 256) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.n) return;
  global<double>(p.y)[i] = p.mode < kFunctions ? math_of(p.mode, global<const float>(p.x)[i])
                                               : math_of(p.mode - kFunctions, global<const double>(p.x)[i]);
}

// y[lane] = what lane 0 … 31 gets from shuffle_down by 5, y[32+lane] from shuffle of
// lane 31-lane, y[64+lane] from shuffle_xor by 7, of the values 100·lane (double).
ENTRY(probe_shuffle, ProbeParams, 32) {
  double* y = global<double>(p.y);
  const double x = 100. * lane();
  y[lane()] = shuffle_down(x, 5);
  y[32 + lane()] = shuffle(x, 31 - lane());
  y[64 + lane()] = shuffle_xor(float(x), 7);
}

#if DAHL_SM >= 80
// z += x·y of one warp: mode 0 tf32, x 16×8, y 8×8, z 16×8; mode 1 bf16, x 16×16, y 16×8,
// z 16×8 (all float); mode 2 double, x 8×4, y 4×8, z 8×8.
ENTRY(probe_mma, ProbeParams, 32) {
  const int g = lane() / 4, t = lane() % 4;
  if (p.mode == 2) {
    double* z = global<double>(p.z) + 8 * g + 2 * t;
    double d[2] = {z[0], z[1]};
    mma_f64(d, global<const double>(p.x)[4 * g + t], global<const double>(p.y)[8 * t + g]);
    z[0] = d[0], z[1] = d[1];
    return;
  }
  const float* x = global<const float>(p.x);
  const float* y = global<const float>(p.y);
  float* z = global<float>(p.z);
  float* rows[2] = {z + 8 * g + 2 * t, z + 8 * (g + 8) + 2 * t};
  float d[4] = {rows[0][0], rows[0][1], rows[1][0], rows[1][1]};
  uint32_t a[4], b[2];
  if (p.mode == 0) {
    for (int i = 0; i < 4; i++) a[i] = round_tf32(x[8 * (g + i % 2 * 8) + t + i / 2 * 4]);
    for (int i = 0; i < 2; i++) b[i] = round_tf32(y[8 * (t + 4 * i) + g]);
    mma_tf32(d, a, b);
  } else {
    for (int i = 0; i < 4; i++) {
      const float* pair = x + 16 * (g + i % 2 * 8) + 2 * t + i / 2 * 8;
      a[i] = round_bf16(pair[0], pair[1]);
    }
    for (int i = 0; i < 2; i++) b[i] = round_bf16(y[8 * (2 * t + 8 * i) + g], y[8 * (2 * t + 8 * i + 1) + g]);
    mma_bf16(d, a, b);
  }
  rows[0][0] = d[0], rows[0][1] = d[1], rows[1][0] = d[2], rows[1][1] = d[3];
}
#endif

// The faults, by mode: 0 none, 1 a missing barrier, 2 a barrier that half of the threads never
// reach, 3 a read beyond x (n elements), 4 two blocks that write the same element, 5 a
// shuffle that half of the warp never reaches, 6 shared memory of another thread read
// before its asynchronous copy was waited for.
ENTRY(probe_fault, ProbeParams, 64) {
  SHARED(float, tile, [64]);
  const float* x = global<const float>(p.x);
  float* y = global<float>(p.y);
  const int i = threadIdx.x;
  if (p.mode == 6) {
    copy_async<4>(tile + i, x + i);
    copy_commit();
  } else {
    tile[i] = x[i % p.n];
  }
  if (p.mode == 2 && i >= 32) return;
  if (p.mode != 1) sync();
  if (p.mode == 5 && i % 2 == 1) return;
  float v = tile[63 - i];
  if (p.mode == 5) v = shuffle_xor(v, 2);
  if (p.mode == 3) v += x[p.n + i];
  if (blockIdx.x == 0 || p.mode == 4) y[i] = v;
}

}  // namespace dahl
