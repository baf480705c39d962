// Execution of a grid on the host: blocks one after another, the threads of a block as
// fibers that switch at barriers and at what a warp does together.
#pragma once

#include <string>

#include "host.h"

namespace host {

// Grid is one launch of a kernel.
struct Grid {
  const Entry* entry;
  Index blocks, threads;
  size_t dynamic_bytes;
  const void* params;
  bool backward;  // the threads of each block start in descending order
};

// prepare takes the memory that blocks use, before the first grid.
void prepare();

// run executes the grid on the calling thread; one grid runs at a time in a process. It
// returns what was wrong with it, empty if nothing was: a barrier that not all threads
// reach, a bad access (checker.h), too much shared memory.
std::string run(const Grid& grid);

// fail ends the running grid with a reason; called from a fiber it does not return.
[[noreturn]] void fail(std::string reason);

// find returns the kernel compiled for the architecture, or null.
const Entry* find(const std::string& name, int sm);

}  // namespace host
