// libcuda.so.1 of the tests: the calls of the driver API over the devices of machine.h;
// those for memory are in driver_memory.cc, those for kernels in driver_module.cc.
#include "driver.h"

#include <cstdio>

thread_local Device* current;

namespace {
bool known(CUdevice d) { return d >= 0 && d < machine::options().devices; }
}  // namespace

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

// Streams, events, graphs.

API cuStreamCreateWithPriority(CUstream* stream, unsigned int, int) {
  NEED_CONTEXT;
  *stream = reinterpret_cast<CUstream>(machine::new_stream(current));
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
