// Operands of elementwise kernels: boxes of equal extents, seen as rows of contiguous
// elements over up to three outer dimensions. Dimensions that follow each other without a
// gap in all operands are one, so whole buffers are one row.
//
// These kernels are bound by memory. A thread takes four elements at a time, one load or
// store of 16 bytes per operand for float: with 2048 threads per multiprocessor 32 KB per
// operand are under way, where 3.3 TB/s at 600 ns among 132 multiprocessors ask for 15 KB.
#pragma once

#include "division.h"

namespace dahl {

// Rows is mirrored by kernels.rowsParams.
struct Rows {
  Division groups;             // of a row, the last one maybe not whole
  Division extent1, extent2;   // of the last two outer dimensions
  int32_t columns;             // elements of a row
  int32_t total;               // groups of all rows
  int32_t aligned;             // whether groups begin at multiples of their size in all operands
};

// Strided is one operand: its first element and, in elements, the distances of the outer
// dimensions. It is mirrored by kernels.stridedParams.
struct Strided {
  uint64_t first;
  int64_t stride[3];
};

// Group is the elements that a thread takes at a time: 16 bytes of float, two times 16 of
// double.
constexpr int kGroup = 4;

template <class T>
struct Group {
  T element[kGroup];
  DEVICE T& operator[](int i) { return element[i]; }
  DEVICE T operator[](int i) const { return element[i]; }
};

// load_whole and store_whole move a group at once. They name the instruction, since the
// compiler cuts copies of structs into smaller ones.
typedef uint32_t FourBytes __attribute__((may_alias));
typedef uint64_t EightBytes __attribute__((may_alias));

DEVICE Group<float> load_whole(const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  return {v[0], v[1], v[2], v[3]};
}
DEVICE Group<double> load_whole(const double* from) {
  const double2 *pair = reinterpret_cast<const double2*>(from), u = pair[0], v = pair[1];
  return {u[0], u[1], v[0], v[1]};
}
DEVICE Group<uint8_t> load_whole(const uint8_t* from) {
  const uint32_t v = *reinterpret_cast<const FourBytes*>(from);
  return {uint8_t(v), uint8_t(v >> 8), uint8_t(v >> 16), uint8_t(v >> 24)};
}
DEVICE Group<uint16_t> load_whole(const uint16_t* from) {
  const uint64_t v = *reinterpret_cast<const EightBytes*>(from);
  return {uint16_t(v), uint16_t(v >> 16), uint16_t(v >> 32), uint16_t(v >> 48)};
}
DEVICE void store_whole(float* to, const Group<float>& g) {
  *reinterpret_cast<float4*>(to) = float4{g[0], g[1], g[2], g[3]};
}
DEVICE void store_whole(double* to, const Group<double>& g) {
  double2* pair = reinterpret_cast<double2*>(to);
  pair[0] = double2{g[0], g[1]};
  pair[1] = double2{g[2], g[3]};
}
DEVICE void store_whole(uint8_t* to, const Group<uint8_t>& g) {
  *reinterpret_cast<FourBytes*>(to) = g[0] | uint32_t(g[1]) << 8 | uint32_t(g[2]) << 16 | uint32_t(g[3]) << 24;
}
DEVICE void store_whole(uint16_t* to, const Group<uint16_t>& g) {
  *reinterpret_cast<EightBytes*>(to) = g[0] | uint64_t(g[1]) << 16 | uint64_t(g[2]) << 32 | uint64_t(g[3]) << 48;
}

// Place is where a group lies: its row, its first column, and how many columns it has. A
// whole one has kGroup, and begins at a multiple of its size in all operands.
template <bool whole>
struct Place {
  int32_t row[3];
  int32_t column, count;
};

// each_group calls f with the place of every group that falls to this thread. Code for
// whole groups is apart from that for the others, so that it has no branches.
template <class F>
DEVICE void each_group(const Rows& r, F f) {
  for (int32_t g = blockIdx.x * blockDim.x + threadIdx.x; g < r.total; g += gridDim.x * blockDim.x) {
    int32_t group, row[3];
    row[0] = r.extent1.split(r.extent2.split(r.groups.split(g, group), row[2]), row[1]);
    const int32_t column = group * kGroup, count = min(kGroup, r.columns - column);
    if (r.aligned && count == kGroup)
      f(Place<true>{{row[0], row[1], row[2]}, column, kGroup});
    else
      f(Place<false>{{row[0], row[1], row[2]}, column, count});
  }
}

// at is the first element of a group.
template <class T, bool whole>
DEVICE T* at(const Strided& s, const Place<whole>& p) {
  return global<T>(s.first) + (s.stride[0] * p.row[0] + s.stride[1] * p.row[1] + s.stride[2] * p.row[2] + p.column);
}

// load and store move a group from and to its place in an operand, or at an address.
template <class T, bool whole>
DEVICE Group<T> load(const T* from, const Place<whole>& p) {
  if constexpr (whole) return load_whole(from);
  Group<T> g = {};
#pragma unroll
  for (int i = 0; i < kGroup; i++)
    if (i < p.count) g[i] = from[i];
  return g;
}

template <class T, bool whole>
DEVICE Group<T> load(const Strided& s, const Place<whole>& p) {
  return load(at<const T>(s, p), p);
}

template <class T, bool whole>
DEVICE void store(const Strided& s, const Place<whole>& p, const Group<T>& g) {
  T* to = at<T>(s, p);
  if constexpr (whole) {
    store_whole(to, g);
    return;
  }
#pragma unroll
  for (int i = 0; i < kGroup; i++)
    if (i < p.count) to[i] = g[i];
}

}  // namespace dahl
