// Memory of the devices and pinned memory of the host.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "block.h"
#include "state.h"

namespace machine {
namespace {

constexpr size_t alignment = 512;  // cuMemAlloc promises 256
constexpr size_t gap = 512;        // never allocated, so that overruns are found

std::vector<Device*> with_memory;
std::map<void*, size_t> pins;

char* map(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    fprintf(stderr, "testdriver: no address space for %zu bytes of device memory\n", bytes);
    abort();
  }
  return static_cast<char*>(p);
}

// span of address space: allocations take more than their bytes
size_t span(const Device* d) { return 2 * d->capacity + (16 << 20); }

Device* device_of(CUdeviceptr p) {
  for (Device* d : with_memory)
    if (p - reinterpret_cast<CUdeviceptr>(d->addresses) < span(d)) return d;
  return nullptr;
}

size_t round_up(size_t n) { return (n + alignment - 1) / alignment * alignment; }

}  // namespace

Device* new_device(int ordinal, const Options& o) {
  Device* d = new Device{ordinal};
  d->capacity = o.memory;
  if (o.lose_device == ordinal) d->lose_launch = o.lose_launch;
  d->waits = o.wait;
  d->addresses = map(span(d), PROT_NONE);
  d->memory = map(span(d), PROT_READ | PROT_WRITE);
  const std::string name = "device " + std::to_string(ordinal);
  checker::watch(d->memory, span(d), name.c_str());
  with_memory.push_back(d);
  return d;
}

void delete_memory(Device* d) {
  checker::unwatch(d->memory);
  munmap(d->memory, span(d));
  munmap(d->addresses, span(d));
  with_memory.erase(std::find(with_memory.begin(), with_memory.end(), d));
}

CUresult allocate(Device* device, size_t bytes, CUdeviceptr* p) {
  note("allocate");
  std::unique_lock<std::mutex> held(lock);
  if (device->error) return device->error;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > device->capacity - device->used) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t offset = gap;
  for (auto [begin, size] : device->allocations) {
    if (begin >= offset + bytes + gap) break;
    offset = round_up(begin + size + gap);
  }
  if (offset + bytes + gap > span(device)) return CUDA_ERROR_OUT_OF_MEMORY;
  device->allocations[offset] = bytes;
  device->used += bytes;
  idle(held);
  std::fill_n(device->memory + offset, bytes, char(0xff));  // NaN, as nothing has been written
  checker::allocate(device->memory + offset, bytes);
  *p = reinterpret_cast<CUdeviceptr>(device->addresses + offset);
  return CUDA_SUCCESS;
}

CUresult deallocate(CUdeviceptr p) {
  note("free");
  std::unique_lock<std::mutex> held(lock);
  Device* d = device_of(p);
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  const size_t offset = p - reinterpret_cast<CUdeviceptr>(d->addresses);
  auto at = d->allocations.find(offset);
  if (at == d->allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  idle(held);
  checker::release(d->memory + offset, at->second);
  d->used -= at->second;
  d->allocations.erase(at);
  return CUDA_SUCCESS;
}

void memory_info(Device* device, size_t* free, size_t* total) {
  std::unique_lock<std::mutex> held(lock);
  *free = device->capacity - device->used;
  *total = device->capacity;
}

void* memory_of(CUdeviceptr p) {
  Device* d = device_of(p);
  return d ? d->memory + (p - reinterpret_cast<CUdeviceptr>(d->addresses)) : nullptr;
}

void* find(CUdeviceptr p) {
  std::unique_lock<std::mutex> held(lock);
  return memory_of(p);
}

CUresult pin(void* p, size_t bytes) {
  note("pin");
  std::unique_lock<std::mutex> held(lock);
  idle(held);
  if (checker::watched(p, 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  pins[p] = bytes;
  checker::watch(p, bytes, "pinned memory");
  checker::allocate(p, bytes);
  return CUDA_SUCCESS;
}

CUresult unpin(void* p) {
  std::unique_lock<std::mutex> held(lock);
  idle(held);
  if (pins.erase(p) == 0) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  checker::unwatch(p);
  return CUDA_SUCCESS;
}

bool pinned(const void* p, size_t bytes) {
  std::unique_lock<std::mutex> held(lock);
  return checker::watched(p, bytes);
}

}  // namespace machine

// translate is what kernels call: a null operand stays null.
void* host::translate(uint64_t address) {
  if (address == 0) return nullptr;
  void* p = machine::memory_of(address);
  if (!p) fail("an operand is no address of a device");
  return p;
}
