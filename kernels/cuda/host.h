// What the host gives a kernel in place of a GPU; device.h turns its primitives into these
// calls. The test build of the driver library (execute/cuda/testdriver) defines them. One
// thread block runs at a time in a process, its threads as fibers of one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace host {

struct Index {
  unsigned x, y, z;
};

// The running thread's indices and the extents of the launch.
extern Index thread_index, block_index, block_extent, grid_extent;

// translate gives the memory behind a device address; the address itself cannot be read.
void* translate(uint64_t address);

// Barriers of the block and of the warp. A barrier that some thread can no longer reach
// fails the launch.
void sync();
void sync_warp();
int lane();

// shared gives the block's array known by key, the same for all its threads;
// dynamic_shared the bytes that the launch asked for. Both start as NaN.
void* shared(const void* key, size_t bytes);
void* dynamic_shared();

// exchange hands in `bytes` (at most 32) bytes of this lane and gives those of all lanes of
// the warp, in order, until the lane's next collective call but one.
const void* exchange(const void* mine, size_t bytes);

// Asynchronous copies take place at the wait that covers them, not before.
void copy_async(void* to, const void* from, int bytes, int valid);
void copy_commit();
void copy_wait(int groups);

// Products of a warp; every sum is made in double and rounded once per call.
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mma_f64(double (&d)[2], double a, double b);

// Entry makes a kernel known by its name and the architecture it was compiled for.
struct Entry {
  Entry(const char* name, int sm, size_t params, void (*body)(const void* params));
  const char* name;
  int sm;
  size_t params;
  void (*body)(const void*);
  const Entry* next;
};

}  // namespace host

#define threadIdx host::thread_index
#define blockIdx host::block_index
#define blockDim host::block_extent
#define gridDim host::grid_extent
