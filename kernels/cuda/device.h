// Package-wide header of the CUDA kernels: what a kernel may use of the machine.
//
// One source is compiled twice. clang compiles it for a GPU (no CUDA installation is
// needed); a C++ compiler compiles it for the host, where the test build of the driver
// library runs a thread block as fibers (host.h). A kernel that keeps to this header
// therefore means the same on both sides, and its indexing, its barriers and its sums are
// tested without a GPU.
//
// A kernel file reads
//
//	#include "device.h"
//	namespace dahl {
//	struct AddParams { uint64_t x, y; int32_t n; };   // mirrored by a Go struct
//	ENTRY(add_f32, AddParams, 256) {                   // at most 256 threads per block
//	  float* y = global<float>(p.y);
//	  ...
//	}
//	}
//
// The rules that keep both sides alike:
//   - everything lies in namespace dahl (the host build renames it per file and architecture);
//   - device addresses come as uint64_t and become pointers through global<T> only;
//   - no thread may return before a barrier or a shuffle that others of its block or warp
//     still reach; shuffles and mma want all 32 lanes, so blocks are multiples of 32;
//   - no atomics: every sum has a fixed order.
#pragma once

#if defined(__CUDA_ARCH__)
#define DAHL_DEVICE 1
#define DAHL_SM (__CUDA_ARCH__ / 10)
#define DEVICE __attribute__((device)) inline __attribute__((always_inline))
#include <__clang_cuda_builtin_vars.h>
#else
#define DAHL_DEVICE 0
#ifndef DAHL_SM
#define DAHL_SM 80
#endif
#define DEVICE inline
#include "host.h"
#endif

// ENTRY(name, Params) or ENTRY(name, Params, max threads per block[, min blocks per
// multiprocessor]) opens the body of a kernel whose one parameter is `const Params p`.
#if DAHL_DEVICE
#define ENTRY(name, Params, ...)                                                          \
  extern "C" __attribute__((global)) __VA_OPT__(__attribute__((launch_bounds(__VA_ARGS__)))) \
  void name(const Params p)
#else
#define ENTRY(name, Params, ...)                                                  \
  static void name(const Params p);                                               \
  static const host::Entry name##_entry(#name, DAHL_SM, sizeof(Params),           \
      [](const void* p) { name(*static_cast<const Params*>(p)); });               \
  static void name(const Params p)
#endif

// SHARED(float, tile, [16][17]) declares an array of the block; its contents are undefined
// at first. DYNAMIC_SHARED(float, name) points at the bytes that the launch asked for,
// aligned to 16.
#if DAHL_DEVICE
#define SHARED(type, name, extents) static __attribute__((shared)) __attribute__((aligned(16))) type name extents
#define DYNAMIC_SHARED(type, name)                                                    \
  extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char dahl_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(dahl_dynamic_shared)
#else
#define SHARED(type, name, extents)                \
  static const char name##_key = 0;                \
  using name##_array = type extents;               \
  name##_array& name = *static_cast<name##_array*>(host::shared(&name##_key, sizeof(name##_array)))
#define DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(host::dynamic_shared())
#endif

namespace dahl {

typedef __INT8_TYPE__ int8_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

// Vectors of 8 and 16 bytes, one load or store each; elements by [i]. Addresses must be
// aligned to the vector's size.
typedef float float2 __attribute__((vector_size(8)));
typedef float float4 __attribute__((vector_size(16)));
typedef double double2 __attribute__((vector_size(16)));
typedef int32_t int2 __attribute__((vector_size(8)));
typedef int32_t int4 __attribute__((vector_size(16)));

// global turns a device address into a pointer to global memory.
template <class T>
DEVICE T* global(uint64_t address) {
#if DAHL_DEVICE
  return (T*)(__attribute__((address_space(1))) T*)address;  // ld.global, not a generic ld
#else
  return static_cast<T*>(host::translate(address));
#endif
}

// sync is the barrier of the block; sync_warp that of the 32 lanes of a warp. Both order
// accesses to shared and global memory among the threads that meet.
DEVICE void sync() {
#if DAHL_DEVICE
  __syncthreads();
#else
  host::sync();
#endif
}

DEVICE void sync_warp() {
#if DAHL_DEVICE
  __nvvm_bar_warp_sync(0xffffffffu);
#else
  host::sync_warp();
#endif
}

// lane is the thread's number in its warp, 0 … 31 (threads count x first, then y, z).
DEVICE int lane() {
#if DAHL_DEVICE
  return __nvvm_read_ptx_sreg_laneid();
#else
  return host::lane();
#endif
}

}  // namespace dahl

#include "device_math.h"
#include "device_warp.h"
#include "device_copy.h"
