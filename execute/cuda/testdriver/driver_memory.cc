// The calls of the driver API for memory: allocation, pinning, copies.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"

API cuMemGetInfo(size_t* free, size_t* total) {
  NEED_CONTEXT;
  machine::memory_info(current, free, total);
  return CUDA_SUCCESS;
}
API cuMemAlloc(CUdeviceptr* p, size_t bytes) {
  NEED_CONTEXT;
  return machine::allocate(current, bytes, p);
}
API cuMemFree(CUdeviceptr p) { return machine::deallocate(p); }

API cuMemHostAlloc(void** p, size_t bytes, unsigned int) {
  if (posix_memalign(p, 4096, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  return machine::pin(*p, bytes);
}
API cuMemFreeHost(void* p) {
  if (const CUresult r = machine::unpin(p)) return r;
  free(p);
  return CUDA_SUCCESS;
}
API cuMemHostRegister(void* p, size_t bytes, unsigned int) { return machine::pin(p, bytes); }
API cuMemHostUnregister(void* p) { return machine::unpin(p); }

namespace {

// Side is where the rows of a copy lie: memory of the host, or of a device by its address.
struct Side {
  char* host;
  CUdeviceptr device;
  size_t pitch;
  char* memory() const { return host ? host : static_cast<char*>(machine::memory_of(device)); }
};

Fault copy_rows(Side to, Side from, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++) {
    char* t = to.memory() + row * to.pitch;
    const char* f = from.memory() + row * from.pitch;
    std::string wrong = checker::check(f, width, false);
    if (wrong.empty()) wrong = checker::check(t, width, true);
    if (!wrong.empty()) return {CUDA_ERROR_ILLEGAL_ADDRESS, wrong};
    memmove(t, f, width);
  }
  return {};
}

// copy enqueues a copy. An asynchronous one from or to memory that is not pinned would
// block the host, which dahl never wants, and is refused.
CUresult copy(const char* name, Side to, Side from, size_t width, size_t height, machine::Stream* stream, bool async) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  for (const Side& s : {to, from}) {
    NEED(s.host || machine::find(s.device));
    NEED(height == 1 || s.pitch >= width);
    if (async && s.host && !machine::pinned(s.host, (height - 1) * s.pitch + width)) {
      fprintf(stderr, "testdriver: %s: the host's memory is not pinned\n", name);
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const CUresult r = machine::enqueue(stream, name, [=] { return copy_rows(to, from, width, height); });
  return r || async ? r : machine::synchronize(stream);
}

Side at_host(const void* p) { return {static_cast<char*>(const_cast<void*>(p)), 0, 0}; }
Side at_device(CUdeviceptr p) { return {nullptr, p, 0}; }

Side side(CUmemorytype type, const void* host, CUdeviceptr device, size_t pitch, size_t x, size_t y) {
  const size_t skip = y * pitch + x;
  if (type == CU_MEMORYTYPE_HOST) return {static_cast<char*>(const_cast<void*>(host)) + skip, 0, pitch};
  return {nullptr, device + skip, pitch};
}

CUresult copy_2d(const CUDA_MEMCPY2D* c, machine::Stream* stream, bool async) {
  for (CUmemorytype t : {c->srcMemoryType, c->dstMemoryType})
    if (t == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  return copy("copy of rows", side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstXInBytes, c->dstY),
              side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcXInBytes, c->srcY), c->WidthInBytes,
              c->Height, stream, async);
}

// fill enqueues a fill, for which CUDA does not wait in the form without "Async" either.
template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count, machine::Stream* stream) {
  T* memory = static_cast<T*>(machine::find(to));
  NEED(memory && to % sizeof(T) == 0);
  return machine::enqueue(stream, "fill", [=]() -> Fault {
    std::string wrong = checker::check(memory, count * sizeof(T), true);
    if (!wrong.empty()) return {CUDA_ERROR_ILLEGAL_ADDRESS, wrong};
    for (size_t i = 0; i < count; i++) memory[i] = value;
    return {};
  });
}

}  // namespace

API cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  NEED_CONTEXT;
  return copy("copy to the device", at_device(to), at_host(from), bytes, 1, stream_of(nullptr), false);
}
API cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  NEED_CONTEXT;
  return copy("copy to the host", at_host(to), at_device(from), bytes, 1, stream_of(nullptr), false);
}
API cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  return copy("copy to the device", at_device(to), at_host(from), bytes, 1, stream_of(stream), true);
}
API cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  return copy("copy to the host", at_host(to), at_device(from), bytes, 1, stream_of(stream), true);
}
API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  return copy("copy on the device", at_device(to), at_device(from), bytes, 1, stream_of(stream), true);
}
// cuMemcpyAsync is for memory of devices here; of the host's dahl says that it is.
API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  return copy("copy between addresses", at_device(to), at_device(from), bytes, 1, stream_of(stream), true);
}
API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  return copy("copy between devices", at_device(to), at_device(from), bytes, 1, stream_of(stream), true);
}
API cuMemcpy2D(const CUDA_MEMCPY2D* c) {
  NEED_CONTEXT;
  return copy_2d(c, stream_of(nullptr), false);
}
API cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream stream) {
  NEED_CONTEXT;
  return copy_2d(c, stream_of(stream), true);
}
API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  return fill(to, value, count, stream_of(stream));
}
API cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  return fill(to, value, count, stream_of(stream));
}
API cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  NEED_CONTEXT;
  return fill(to, value, count, stream_of(nullptr));
}
