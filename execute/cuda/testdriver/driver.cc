// libcuda.so.1 of the tests: the calls of the driver API over the devices of machine.h.
// Modules are PTX as on a GPU; of it only the names of the kernels and the sizes of their
// parameters are read, and what runs is the same source compiled for the host.
#include <cstring>
#include <map>

#include "block.h"
#include "cuda.h"
#include "machine.h"

using machine::Device;
using machine::Fault;

namespace {

thread_local Device* current;

Device* device_of(CUcontext c) { return reinterpret_cast<Device*>(c); }
CUcontext context_of(Device* d) { return reinterpret_cast<CUcontext>(d); }
machine::Event* event_of(CUevent e) { return reinterpret_cast<machine::Event*>(e); }

// stream_of is the stream of a handle; null is the device's own, which, unlike CUDA's
// legacy stream, waits for no other.
machine::Stream* stream_of(CUstream s) {
  return s ? reinterpret_cast<machine::Stream*>(s) : machine::default_stream(current);
}

bool known(CUdevice d) { return d >= 0 && d < machine::options().devices; }

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) CUresult
#define NEED_CONTEXT \
  if (!current) return CUDA_ERROR_INVALID_CONTEXT
#define NEED(condition) \
  if (!(condition)) return CUDA_ERROR_INVALID_VALUE

// Process and devices.

API cuInit(unsigned int) { return machine::options().devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE; }

API cuDriverGetVersion(int* version) {
  *version = 12000;
  return CUDA_SUCCESS;
}

API cuDeviceGetCount(int* count) {
  *count = machine::options().devices;
  return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice* device, int ordinal) {
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

API cuDeviceGetName(char* name, int length, CUdevice device) {
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, size_t(length), "Test device %d", device);
  return CUDA_SUCCESS;
}

API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  for (int i = 0; i < 16; i++) uuid->bytes[i] = char(17 * i + device);
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = machine::options().memory;
  return CUDA_SUCCESS;
}

API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const int sm = machine::options().capability;
  const std::map<int, int> values = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0xffff},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 0xffff},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, (sm < 80 ? 64 : sm < 90 ? 163 : 227) << 10},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 8},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, sm / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, sm % 10},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device + 1},
  };
  auto at = values.find(attribute);
  *value = at == values.end() ? 0 : at->second;
  return CUDA_SUCCESS;
}

API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (!known(device) || !known(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

// Contexts: one per device, its handle the device's.

API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device* d;
  const CUresult r = machine::retain(device, &d);
  *context = context_of(d);
  return r;
}
API cuDevicePrimaryCtxRelease(CUdevice device) { return machine::release(device); }
API cuDevicePrimaryCtxSetFlags(CUdevice, unsigned int) { return CUDA_SUCCESS; }

API cuCtxSetCurrent(CUcontext context) {
  current = device_of(context);
  return CUDA_SUCCESS;
}
API cuCtxGetCurrent(CUcontext* context) {
  *context = context_of(current);
  return CUDA_SUCCESS;
}
API cuCtxGetDevice(CUdevice* device) {
  NEED_CONTEXT;
  *device = machine::ordinal(current);
  return CUDA_SUCCESS;
}
API cuCtxSynchronize(void) {
  NEED_CONTEXT;
  return machine::synchronize(current);
}
API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return CUDA_SUCCESS;
}
API cuCtxEnablePeerAccess(CUcontext peer, unsigned int) {
  NEED_CONTEXT;
  return peer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Memory.

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

// Copies.

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
    NEED(s.memory());
    NEED(height == 1 || s.pitch >= width);
    if (async && s.host && !checker::watched(s.host, (height - 1) * s.pitch + width)) {
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

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count, machine::Stream* stream, bool async) {
  T* memory = static_cast<T*>(machine::memory_of(to));
  NEED(memory && to % sizeof(T) == 0);
  const CUresult r = machine::enqueue(stream, "fill", [=]() -> Fault {
    std::string wrong = checker::check(memory, count * sizeof(T), true);
    if (!wrong.empty()) return {CUDA_ERROR_ILLEGAL_ADDRESS, wrong};
    for (size_t i = 0; i < count; i++) memory[i] = value;
    return {};
  });
  return r || async ? r : machine::synchronize(stream);
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
  return fill(to, value, count, stream_of(stream), true);
}
API cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  return fill(to, value, count, stream_of(stream), true);
}
API cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  NEED_CONTEXT;
  return fill(to, value, count, stream_of(nullptr), false);
}

// Modules.

struct CUfunc_st {
  Device* device;
  const host::Entry* entry;
  int max_threads, max_dynamic;
};

struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};

namespace {

// number reads the decimal number behind a word, from a place in the text on; `otherwise`
// if the word is not among the next characters.
int number(const std::string& text, size_t from, const char* word, size_t within, int otherwise) {
  const size_t at = text.find(word, from);
  return at == std::string::npos || at - from > within ? otherwise : atoi(text.c_str() + at + strlen(word));
}

// kernel reads what stands between two ".entry" of PTX as clang writes it:
//
//	.visible .entry NAME(
//		.param .align 8 .b8 NAME_param_0[BYTES]
//	)
//	.maxntid THREADS, 1, 1
bool kernel(const std::string& text, size_t at, int sm, std::map<std::string, CUfunc_st>& functions) {
  const std::string name = text.substr(at, text.find('(', at) - at);
  const host::Entry* entry = host::find(name, sm);
  const int bytes = number(text, at, "_param_0[", 2 * name.size() + 64, 0);
  if (entry && entry->params != size_t(bytes)) {
    fprintf(stderr, "testdriver: %s: %zu bytes of parameters on the host, %d in PTX\n", name.c_str(), entry->params, bytes);
    return false;
  }
  const size_t body = text.find('{', at);
  functions[name] = {current, entry, number(text, at, ".maxntid ", body - at, 1024), 48 << 10};
  return true;
}

}  // namespace

API cuModuleLoadData(CUmodule* module, const void* image) {
  NEED_CONTEXT;
  const std::string text(static_cast<const char*>(image)), entry = ".entry ";
  const int sm = number(text, 0, ".target sm_", text.size(), 0);
  if (sm == 0) return CUDA_ERROR_INVALID_PTX;
  if (sm > machine::options().capability) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto m = std::make_unique<CUmod_st>();
  for (size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1))
    if (!kernel(text, at + entry.size(), sm, m->functions)) return CUDA_ERROR_INVALID_PTX;
  *module = m.release();
  return CUDA_SUCCESS;
}

API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  auto at = module->functions.find(name);
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  if (!at->second.entry) {
    fprintf(stderr, "testdriver: kernel %s was not compiled for the host\n", name);
    return CUDA_ERROR_NOT_FOUND;
  }
  *function = &at->second;
  return CUDA_SUCCESS;
}

API cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}

API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function->max_threads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_NOT_SUPPORTED;
  int most;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, machine::ordinal(function->device));
  NEED(value >= 0 && value <= most);
  function->max_dynamic = value;
  return CUDA_SUCCESS;
}

namespace {

// parameters takes the bytes of the kernel's one parameter from either form of a launch.
bool parameters(const host::Entry* entry, void** params, void** extra, std::vector<char>& bytes) {
  const void* from = params ? params[0] : nullptr;
  size_t size = entry->params;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) from = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(extra[1]);
  }
  if (!from || size != entry->params) return false;
  bytes.assign(static_cast<const char*>(from), static_cast<const char*>(from) + size);
  return true;
}

}  // namespace

API cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int dynamic, CUstream stream, void** params, void** extra) {
  NEED_CONTEXT;
  const uint64_t threads = uint64_t(bx) * by * bz;
  NEED(gx > 0 && gy > 0 && gz > 0 && gy <= 0xffff && gz <= 0xffff && threads > 0 && bz <= 64);
  NEED(int(dynamic) <= f->max_dynamic);
  if (threads > uint64_t(f->max_threads)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  std::vector<char> bytes;
  if (!parameters(f->entry, params, extra, bytes)) {
    fprintf(stderr, "testdriver: %s: the launch has not %zu bytes of parameters\n", f->entry->name, f->entry->params);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Device* device = current;
  return machine::enqueue(stream_of(stream), f->entry->name, [=]() -> Fault {
    static bool backward = false;
    if (machine::count_launch(device))
      return {CUDA_ERROR_ECC_UNCORRECTABLE, std::string(f->entry->name) + ": the device is lost, as asked"};
    backward = !backward;
    // the parameter is aligned to 8 there and, by the vector's allocation, here
    const std::string wrong = host::run({f->entry, {gx, gy, gz}, {bx, by, bz}, dynamic, bytes.data(), backward});
    if (!wrong.empty()) return {CUDA_ERROR_LAUNCH_FAILED, wrong};
    return {};
  });
}

// Streams, events, graphs.

API cuStreamCreateWithPriority(CUstream* stream, unsigned int, int) {
  NEED_CONTEXT;
  *stream = reinterpret_cast<CUstream>(machine::new_stream(current));
  return CUDA_SUCCESS;
}
API cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
API cuStreamDestroy(CUstream stream) { return machine::delete_stream(stream_of(stream)); }
API cuStreamQuery(CUstream stream) { return machine::query(stream_of(stream)); }
API cuStreamSynchronize(CUstream stream) { return machine::synchronize(stream_of(stream)); }
API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  return machine::wait(stream_of(stream), event_of(event));
}

API cuEventCreate(CUevent* event, unsigned int flags) {
  *event = reinterpret_cast<CUevent>(machine::new_event(!(flags & CU_EVENT_DISABLE_TIMING)));
  return CUDA_SUCCESS;
}
API cuEventDestroy(CUevent event) {
  machine::delete_event(event_of(event));
  return CUDA_SUCCESS;
}
API cuEventRecord(CUevent event, CUstream stream) { return machine::record(event_of(event), stream_of(stream)); }
API cuEventQuery(CUevent event) { return machine::query(event_of(event)); }
API cuEventSynchronize(CUevent event) { return machine::synchronize(event_of(event)); }
API cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return machine::elapsed(event_of(from), event_of(to), milliseconds);
}

API cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) { return machine::begin_capture(stream_of(stream)); }
API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return machine::end_capture(stream_of(stream), reinterpret_cast<machine::Graph**>(graph));
}
API cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<machine::Graph*>(graph);
  return CUDA_SUCCESS;
}
API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = reinterpret_cast<CUgraphExec>(machine::instantiate(reinterpret_cast<machine::Graph*>(graph)));
  return CUDA_SUCCESS;
}
API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return machine::launch(reinterpret_cast<machine::Exec*>(exec), stream_of(stream));
}
API cuGraphExecDestroy(CUgraphExec exec) {
  machine::delete_exec(reinterpret_cast<machine::Exec*>(exec));
  return CUDA_SUCCESS;
}

// Errors.

API cuGetErrorName(CUresult error, const char** name) {
#define NAMED(e) \
  {e, #e}
  static const std::map<int, const char*> names = {
      NAMED(CUDA_SUCCESS), NAMED(CUDA_ERROR_INVALID_VALUE), NAMED(CUDA_ERROR_OUT_OF_MEMORY),
      NAMED(CUDA_ERROR_NO_DEVICE), NAMED(CUDA_ERROR_INVALID_DEVICE), NAMED(CUDA_ERROR_INVALID_CONTEXT),
      NAMED(CUDA_ERROR_NO_BINARY_FOR_GPU), NAMED(CUDA_ERROR_ECC_UNCORRECTABLE), NAMED(CUDA_ERROR_INVALID_PTX),
      NAMED(CUDA_ERROR_INVALID_HANDLE), NAMED(CUDA_ERROR_ILLEGAL_STATE), NAMED(CUDA_ERROR_NOT_FOUND),
      NAMED(CUDA_ERROR_NOT_READY), NAMED(CUDA_ERROR_ILLEGAL_ADDRESS), NAMED(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
      NAMED(CUDA_ERROR_CONTEXT_IS_DESTROYED), NAMED(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
      NAMED(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED), NAMED(CUDA_ERROR_LAUNCH_FAILED), NAMED(CUDA_ERROR_NOT_SUPPORTED),
      NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), NAMED(CUDA_ERROR_STREAM_CAPTURE_MERGE),
      NAMED(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED), NAMED(CUDA_ERROR_STREAM_CAPTURE_UNJOINED),
      NAMED(CUDA_ERROR_STREAM_CAPTURE_ISOLATION), NAMED(CUDA_ERROR_CAPTURED_EVENT)};
#undef NAMED
  auto at = names.find(error);
  if (at == names.end()) return CUDA_ERROR_INVALID_VALUE;
  *name = at->second;
  return CUDA_SUCCESS;
}
