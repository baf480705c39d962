// libcudnn.so.9 for tests, over the driver library of the tests (../testdriver): the calls
// that dahl makes, as NVIDIA's documentation has them, on the CPU. A convolution is an
// operation of the handle's stream, every access is checked, and the ends of the workspace are
// written. What the documentation says is refused is, and the lists of algorithms begin with
// those that dahl does not take: of other bits in every run, of transforms, of large workspaces.
#include <cstdint>
#include <string>
#include <vector>

#include "convolution.h"

namespace {

using namespace dnn;

enum Status { kSuccess = 0, kNotInitialized = 1001, kBadParam = 2000, kNotSupported = 3000, kExecutionFailed = 5000 };
enum Format { kNHWC = 1 };
enum Mode { kCrossCorrelation = 1 };
enum NaN { kNotPropagateNaN = 0, kPropagateNaN = 1 };

struct Handle {
  int device;
  CUstream stream;
};
struct ActivationMode {
  int mode = -1, nan = 0;
};

struct Algorithm {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

// The algorithms by kind, those that would be fastest first, and their number with cuDNN.
// They are deterministic but for ALGO_0 and 3 of the gradients.
const std::vector<int> kAlgorithms[3] = {{6, 2, 1, 0}, {0, 4, 1}, {0, 3, 1}};
enum Forward { kImplicitGEMM = 0, kPrecomputedGEMM = 1, kGEMM = 2, kWinograd = 6 };
constexpr int kInputWinograd = 4;

bool deterministic(Kind kind, int algorithm) { return kind == kForward || (algorithm != 0 && algorithm != 3); }

// A few taps are not worth precomputed indices.
bool few(const Filter& w) { return w.extent[1] * w.extent[2] * w.extent[3] < 24; }

size_t work_bytes(Kind kind, const Tensor&, const Filter& w, const Tensor& y, int algorithm) {
  const size_t size = sizeof(float), taps = size_t(w.extent[1]) * w.extent[2] * w.extent[3];
  if (kind == kForward && algorithm == kGEMM)  // a matrix of every window
    return (size_t(16) << 20) + size * taps * y.extent[0] * y.extent[2] * y.extent[3];
  if (kind == kForward) return algorithm == kPrecomputedGEMM ? 4 * taps : 0;
  return 64;
}

// supported is the status of an algorithm for operands: BAD_PARAM where they do not make a
// convolution, NOT_SUPPORTED where the documentation's tables of types and layouts lack them.
int supported(Kind kind, const Tensor& x, const Filter& w, const Tensor& y, const Geometry& g, int algorithm) {
  if (x.type < 0 || y.type < 0 || w.type < 0 || g.type < 0) return kBadParam;
  if (x.extent[0] != y.extent[0] || x.extent[1] != w.extent[1] || y.extent[1] != w.extent[0]) return kBadParam;
  for (int d = 0; d < 2; d++)
    if (y.extent[2 + d] != 1 + (x.extent[2 + d] + 2 * g.pad[d] - w.extent[2 + d]) / g.stride[d]) return kBadParam;
  if (x.type != y.type || x.type != w.type || x.type != g.type || g.mode != kCrossCorrelation) return kNotSupported;
  if (!x.packed_nhwc() || !y.packed_nhwc() || algorithm > 1) return kNotSupported;
  const bool winograd = kind == kForward ? algorithm == kWinograd : kind == kInputGradient && algorithm == kInputWinograd;
  if (winograd && (w.extent[2] != 3 || w.extent[3] != 3 || g.stride[0] != 1 || g.stride[1] != 1 || x.type != kFloat)) return kNotSupported;
  for (int known : kAlgorithms[kind])
    if (known == algorithm) return kSuccess;
  return kNotSupported;
}

int list(Kind kind, void* handle, const void* x, const void* w, const void* y, const void* convolution, int asked, int* given, void* to) {
  if (!handle || !x || !w || !y || !convolution || asked < 1 || !given || !to) return kBadParam;
  auto& image = *static_cast<const Tensor*>(x);
  auto& result = *static_cast<const Tensor*>(y);
  auto& filter = *static_cast<const Filter*>(w);
  auto& geometry = *static_cast<const Geometry*>(convolution);
  std::vector<int> order = kAlgorithms[kind];
  if (kind == kForward && few(filter)) std::swap(order[2], order[3]);
  // By default also tensor cores may be used, and listed first is what converts types.
  std::vector<int> maths = {geometry.math};
  if (geometry.math == kDefaultMath) maths = {kConvertingMath, kTensorMath, kFMAMath};
  auto out = static_cast<Algorithm*>(to);
  *given = 0;
  for (int math : maths)
    for (int a : order) {
      if (*given == asked) return kSuccess;
      const int status = supported(kind, image, filter, result, geometry, a);
      out[*given] = {a, status, float(*given), work_bytes(kind, image, filter, result, a), deterministic(kind, a), math, {}};
      ++*given;
    }
  return kSuccess;
}

int size_of_work(Kind kind, const void* x, const void* w, const void* y, const void* convolution, int algorithm, size_t* bytes) {
  if (!x || !w || !y || !convolution || !bytes) return kBadParam;
  auto& image = *static_cast<const Tensor*>(x);
  auto& result = *static_cast<const Tensor*>(y);
  auto& filter = *static_cast<const Filter*>(w);
  *bytes = work_bytes(kind, image, filter, result, algorithm);
  return supported(kind, image, filter, result, *static_cast<const Geometry*>(convolution), algorithm);
}

// scale is a factor as it is passed.
double scale(const void* p) { return *static_cast<const float*>(p); }

struct Operands {
  const void *x, *w, *y;  // descriptors
  const void *at_x, *at_w, *at_y;
};

int make(Kind kind, void* handle, const void* alpha, const Operands& o, const void* convolution, int algorithm, void* work, size_t bytes,
         const void* beta, Call& c) {
  auto h = static_cast<Handle*>(handle);
  if (!h || h->device != library::current_device()) return kNotInitialized;
  if (!alpha || !beta || !o.x || !o.w || !o.y || !convolution) return kBadParam;
  for (const void* p : {o.at_x, o.at_w, o.at_y})
    if (!library::at(CUdeviceptr(p))) return kBadParam;
  auto& x = *static_cast<const Tensor*>(o.x);
  c = Call{kind, x, *static_cast<const Tensor*>(o.y), *static_cast<const Filter*>(o.w), *static_cast<const Geometry*>(convolution), algorithm,
           CUdeviceptr(o.at_x), CUdeviceptr(o.at_w), CUdeviceptr(o.at_y), CUdeviceptr(work), bytes, scale(alpha), scale(beta)};
  if (const int status = supported(kind, c.x, c.w, c.y, c.geometry, algorithm)) return status;
  if (bytes < work_bytes(kind, c.x, c.w, c.y, algorithm)) return kBadParam;
  if (bytes > 0 && (!library::at(c.work) || !library::at(c.work + bytes - 1))) return kBadParam;
  return kSuccess;
}

int enqueue(void* handle, const char* name, std::function<std::string()> what) {
  const CUresult r = library::enqueue(static_cast<Handle*>(handle)->stream, name, std::move(what));
  return r == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
}

int convolve(Kind kind, void* handle, const void* alpha, const Operands& o, const void* convolution, int algorithm, void* work, size_t bytes,
             const void* beta) {
  Call c;
  if (const int status = make(kind, handle, alpha, o, convolution, algorithm, work, bytes, beta, c)) return status;
  return enqueue(handle, "convolution", [c] { return run(c); });
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cudnnCreate(void** handle) {
  if (library::current_device() < 0) return kNotInitialized;
  *handle = new Handle{library::current_device(), nullptr};
  return kSuccess;
}
API cudnnDestroy(void* handle) {
  delete static_cast<Handle*>(handle);
  return kSuccess;
}
API cudnnSetStream(void* handle, CUstream stream) {
  if (!handle) return kBadParam;
  static_cast<Handle*>(handle)->stream = stream;
  return kSuccess;
}
extern "C" __attribute__((visibility("default"))) const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized: return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParam: return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported: return "CUDNN_STATUS_NOT_SUPPORTED";
    case kExecutionFailed: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

#define DESCRIPTOR(Name, Type)                        \
  API cudnnCreate##Name##Descriptor(void** d) {       \
    *d = new Type;                                    \
    return kSuccess;                                  \
  }                                                   \
  API cudnnDestroy##Name##Descriptor(void* d) {       \
    delete static_cast<Type*>(d);                     \
    return kSuccess;                                  \
  }
DESCRIPTOR(Tensor, Tensor)
DESCRIPTOR(Filter, Filter)
DESCRIPTOR(Convolution, Geometry)
DESCRIPTOR(Activation, ActivationMode)

API cudnnSetTensor4dDescriptorEx(void* d, int type, int n, int c, int h, int w, int ns, int cs, int hs, int ws) {
  for (int v : {n, c, h, w, ns, cs, hs, ws})
    if (v < 1) return kBadParam;
  if (!d || type != kFloat) return kBadParam;
  *static_cast<Tensor*>(d) = Tensor{type, {n, c, h, w}, {ns, cs, hs, ws}};
  return kSuccess;
}
API cudnnSetFilter4dDescriptor(void* d, int type, int format, int k, int c, int h, int w) {
  for (int v : {k, c, h, w})
    if (v < 1) return kBadParam;
  if (!d || type != kFloat || format != kNHWC) return kBadParam;
  *static_cast<Filter*>(d) = Filter{type, {k, c, h, w}};
  return kSuccess;
}
API cudnnSetConvolution2dDescriptor(void* d, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w, int mode, int type) {
  if (!d || pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h != 1 || dilation_w != 1) return kBadParam;
  *static_cast<Geometry*>(d) = Geometry{type, {pad_h, pad_w}, {u, v}, {1, 1}, mode};
  return kSuccess;
}
API cudnnSetConvolutionMathType(void* d, int math) {
  if (!d || math < kDefaultMath || math > kFMAMath) return kBadParam;
  static_cast<Geometry*>(d)->math = math;
  return kSuccess;
}
API cudnnSetActivationDescriptor(void* d, int mode, int nan, double) {
  if (!d || (mode != kReLU && mode != kIdentity)) return kBadParam;
  *static_cast<ActivationMode*>(d) = ActivationMode{mode, nan};
  return kSuccess;
}

API cudnnGetConvolutionForwardAlgorithm_v7(void* handle, void* x, void* w, void* convolution, void* y, int asked, int* given, void* to) {
  return list(kForward, handle, x, w, y, convolution, asked, given, to);
}
API cudnnGetConvolutionBackwardDataAlgorithm_v7(void* handle, void* w, void* y, void* convolution, void* x, int asked, int* given, void* to) {
  return list(kInputGradient, handle, x, w, y, convolution, asked, given, to);
}
API cudnnGetConvolutionBackwardFilterAlgorithm_v7(void* handle, void* x, void* y, void* convolution, void* w, int asked, int* given, void* to) {
  return list(kWeightGradient, handle, x, w, y, convolution, asked, given, to);
}
API cudnnGetConvolutionForwardWorkspaceSize(void*, void* x, void* w, void* convolution, void* y, int algorithm, size_t* bytes) {
  return size_of_work(kForward, x, w, y, convolution, algorithm, bytes);
}
API cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void* w, void* y, void* convolution, void* x, int algorithm, size_t* bytes) {
  return size_of_work(kInputGradient, x, w, y, convolution, algorithm, bytes);
}
API cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void* x, void* y, void* convolution, void* w, int algorithm, size_t* bytes) {
  return size_of_work(kWeightGradient, x, w, y, convolution, algorithm, bytes);
}

API cudnnConvolutionForward(void* handle, void* alpha, void* x, void* at_x, void* w, void* at_w, void* convolution, int algorithm, void* work,
                            size_t bytes, void* beta, void* y, void* at_y) {
  return convolve(kForward, handle, alpha, {x, w, y, at_x, at_w, at_y}, convolution, algorithm, work, bytes, beta);
}
API cudnnConvolutionBackwardData(void* handle, void* alpha, void* w, void* at_w, void* y, void* at_y, void* convolution, int algorithm,
                                 void* work, size_t bytes, void* beta, void* x, void* at_x) {
  return convolve(kInputGradient, handle, alpha, {x, w, y, at_x, at_w, at_y}, convolution, algorithm, work, bytes, beta);
}
API cudnnConvolutionBackwardFilter(void* handle, void* alpha, void* x, void* at_x, void* y, void* at_y, void* convolution, int algorithm,
                                   void* work, size_t bytes, void* beta, void* w, void* at_w) {
  return convolve(kWeightGradient, handle, alpha, {x, w, y, at_x, at_w, at_y}, convolution, algorithm, work, bytes, beta);
}

// What dahl does not ask for is refused, a ReLU, and as the documentation has it no activation
// but with one algorithm.
API cudnnConvolutionBiasActivationForward(void* handle, void* alpha, void* x, void* at_x, void* w, void* at_w, void* convolution,
                                          int algorithm, void* work, size_t bytes, void* alpha2, void* z, void* at_z, void* bias,
                                          void* at_bias, void* activation, void* y, void* at_y) {
  Call c;
  if (!alpha2 || !z || !bias || !activation || !library::at(CUdeviceptr(at_bias))) return kBadParam;
  if (const int status = make(kForward, handle, alpha, {x, w, y, at_x, at_w, at_y}, convolution, algorithm, work, bytes, alpha2, c)) return status;
  auto& b = *static_cast<const Tensor*>(bias);
  auto& how = *static_cast<const ActivationMode*>(activation);
  if (b.extent != std::array<int, 4>{1, c.y.extent[1], 1, 1} || b.type != c.y.type) return kBadParam;
  if (c.beta != 0 || at_z != at_y || b.stride[1] != 1 || how.nan != kNotPropagateNaN) return kNotSupported;
  if (how.mode != kIdentity || algorithm != kPrecomputedGEMM) return kNotSupported;
  c.bias = CUdeviceptr(at_bias);
  return enqueue(handle, "convolution with bias", [c] { return run(c); });
}

API cudnnAddTensor(void* handle, void* alpha, void* a, void* at_a, void* beta, void* c, void* at_c) {
  if (!handle || !a || !c || !library::at(CUdeviceptr(at_a)) || !library::at(CUdeviceptr(at_c))) return kBadParam;
  const Tensor from = *static_cast<const Tensor*>(a), to = *static_cast<const Tensor*>(c);
  if (from.type != to.type || from.extent != std::array<int, 4>{1, to.extent[1], 1, 1}) return kNotSupported;
  return enqueue(handle, "add tensor", [=, alpha = scale(alpha), beta = scale(beta)] {
    return add(to, CUdeviceptr(at_c), CUdeviceptr(at_a), alpha, beta);
  });
}

API cudnnActivationForward(void* handle, void* activation, void* alpha, void* x, void* at_x, void* beta, void* y, void* at_y) {
  if (!handle || !activation || !x || !y || !library::at(CUdeviceptr(at_y))) return kBadParam;
  const Tensor to = *static_cast<const Tensor*>(y);
  auto& how = *static_cast<const ActivationMode*>(activation);
  // Only what dahl does: NaN kept, and in place, where the strides must be the same.
  if (how.mode != kReLU || how.nan != kPropagateNaN || at_x != at_y || static_cast<const Tensor*>(x)->stride != to.stride) return kNotSupported;
  if (scale(alpha) != 1 || scale(beta) != 0) return kNotSupported;
  return enqueue(handle, "activation", [=] { return rectify(to, CUdeviceptr(at_y)); });
}
