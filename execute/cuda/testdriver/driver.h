// What the files of the driver API share: the thread's current device, handles, and the
// forms of the calls.
#pragma once

#include "cuda.h"
#include "machine.h"

using machine::Device;
using machine::Fault;

extern thread_local Device* current;

inline Device* device_of(CUcontext c) { return reinterpret_cast<Device*>(c); }
inline CUcontext context_of(Device* d) { return reinterpret_cast<CUcontext>(d); }
inline machine::Event* event_of(CUevent e) { return reinterpret_cast<machine::Event*>(e); }

// stream_of is the stream of a handle; null is the device's own, which, unlike CUDA's
// legacy stream, waits for no other.
inline machine::Stream* stream_of(CUstream s) {
  return s ? reinterpret_cast<machine::Stream*>(s) : machine::default_stream(current);
}

#define API extern "C" __attribute__((visibility("default"))) CUresult
#define NEED_CONTEXT \
  if (!current) return CUDA_ERROR_INVALID_CONTEXT
#define NEED(condition) \
  if (!(condition)) return CUDA_ERROR_INVALID_VALUE
