// The calls of the driver API for kernels. Modules are PTX as on a GPU; of it only the names
// of the kernels, the sizes of their parameters and their bounds are read, and what runs
// is the same source compiled for the host.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"
#include "driver.h"

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
  machine::note("load");
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
