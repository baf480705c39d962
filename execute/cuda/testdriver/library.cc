#include "library.h"

#include "driver.h"

int library::current_device() { return current ? machine::ordinal(current) : -1; }

CUresult library::enqueue(CUstream stream, const std::string& name, std::function<std::string()> run) {
  NEED_CONTEXT;
  if (CUresult r = machine::first_use(stream_of(stream), name)) return r;
  return machine::enqueue(stream_of(stream), name, [run = std::move(run)]() -> Fault {
    const std::string wrong = run();
    return wrong.empty() ? Fault{} : Fault{CUDA_ERROR_ILLEGAL_ADDRESS, wrong};
  });
}

char* library::at(CUdeviceptr p) { return static_cast<char*>(machine::find(p)); }

std::string library::access(const char* p, size_t bytes, bool write) { return checker::check(p, bytes, write); }
