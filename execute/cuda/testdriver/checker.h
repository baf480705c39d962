// The checker of memory accesses. Kernels are compiled with the compiler's instrumentation
// of loads and stores (-fsanitize=thread, without its library), and the calls that it
// inserts end here; copies are checked by the driver. For every byte of a watched region
// the last accesses are kept, and an access is refused
//
//   - outside of an allocation;
//   - where another thread of the block has accessed the byte, one of the two writes, and
//     no barrier lies between (for threads of one warp: no sync_warp either);
//   - where another block of the launch has, one of the two writes: blocks have no order,
//     so the result would differ from run to run;
//   - where another operation has (a launch or a copy, on any stream), one of the two
//     writes, and neither streams nor events nor the host's waits order them.
//
// The order of operations is that of vector clocks, kept when they are enqueued: whether a
// missing wait is found does not depend on how the run happened to go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace checker {

// Clock of a stream or operation: for each stream how many of its operations precede.
using Clock = std::vector<uint32_t>;
void join(Clock& clock, const Clock& other);

// Operation numbers: stream in the upper bits, its position there (from 1) below; the highest
// bit is 0.
constexpr int position_bits = 22;
constexpr uint32_t streams_at_most = 1u << (31 - position_bits);
inline uint32_t operation(uint32_t stream, uint32_t position) {
  return stream << position_bits | position;
}

// begin makes every access from now on one of this operation, which follows all in its
// clock; name is for messages.
void begin(uint32_t operation, const Clock& clock, const std::string& name);

// Within a launch: a new block starts, all its threads meet, the 32 threads of a warp meet.
void begin_block();
void barrier();
void barrier_warp(int warp);
void set_thread(int thread);

// Regions of memory that are watched. Bytes of a region may be accessed once allocated.
// A region of the block (shared memory) is another one in every block.
void watch(const void* base, size_t bytes, const char* name, bool of_block = false);
void unwatch(const void* base);
void allocate(const void* p, size_t bytes);
void release(const void* p, size_t bytes);
bool watched(const void* p, size_t bytes);  // wholly in one region

// check notes an access of the operation and returns what is wrong with it, or "".
std::string check(const void* p, size_t bytes, bool write);

// read and write are check for the running kernel: a bad access fails its grid.
void read(const void* p, size_t bytes);
void write(const void* p, size_t bytes);

// promise is a write that takes place at some time until settle: no thread may access the
// bytes before.
void promise(const void* p, size_t bytes);
void settle(const void* p, size_t bytes);

}  // namespace checker
