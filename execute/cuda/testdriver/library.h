// What the driver of the tests offers to libraries of the tests, which work on streams as
// kernels do: see ../testblas.
#pragma once

#include <functional>
#include <string>

#include "cuda.h"

#define LIBRARY __attribute__((visibility("default")))

namespace library {

// current_device is the number of the thread's device, or -1.
LIBRARY int current_device();

// enqueue makes something an operation of a stream. What it returns is what went wrong, by
// which the device is lost, or "". The first one of a name on a device loads a library's
// kernels, so it is refused in a capture.
LIBRARY CUresult enqueue(CUstream stream, const std::string& name, std::function<std::string()> run);

// at is the bytes behind an address of a device, null if it is of none, and access notes an
// access of the running operation to them: what is wrong with it, or "".
LIBRARY char* at(CUdeviceptr p);
LIBRARY std::string access(const char* p, size_t bytes, bool write);

}  // namespace library
