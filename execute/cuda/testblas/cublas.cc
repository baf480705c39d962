// libcublas.so.12 for tests, over the driver library of the tests (../testdriver): the calls
// that dahl makes, as NVIDIA's documentation has them, on the CPU. Matrices are column-major, a
// product is an operation of the handle's stream, every access is checked, and the ends of
// the workspace are written. As cuBLAS does it refuses extents, leading dimensions and modes that make no sense.
#include "matrix.h"

namespace {

using namespace testblas;

enum Math { kDefault = 0, kPedantic = 2, kTF32 = 3 };

struct Handle {
  int device;
  CUstream stream;
  CUdeviceptr workspace;
  size_t bytes;
  int math;
};

// multiply is c = alpha·a·b + beta·c, of which c is not read where beta is 0.
template <class T>
std::string multiply(const Handle& h, const Matrix& a, const Matrix& b, const Matrix& c, int depth, T alpha, T beta) {
  std::string wrong = a.access(sizeof(T), false);
  if (wrong.empty()) wrong = b.access(sizeof(T), false);
  if (wrong.empty() && beta != T(0)) wrong = c.access(sizeof(T), false);
  if (wrong.empty()) wrong = c.access(sizeof(T), true);
  if (wrong.empty() && h.bytes > 0) wrong = use(h.workspace, h.bytes);
  if (!wrong.empty()) return "cublas: " + wrong;
  const View<T> from_a = a.view<T>(), from_b = b.view<T>(), to = c.view<T>();
  for (int j = 0; j < c.columns; j++)
    for (int i = 0; i < c.rows; i++) {
      const T s = sum(from_a, from_b, i, j, 0, depth, h.math == kTF32);
      T& v = to.at(i, j);
      v = beta == T(0) ? alpha * s : alpha * s + beta * v;
    }
  return "";
}

template <class T>
int gemm(void* handle, int ta, int tb, int m, int n, int k, const T* alpha, const void* a, int lda, const void* b, int ldb,
         const T* beta, void* c, int ldc) {
  auto h = static_cast<Handle*>(handle);
  if (!h || h->device != library::current_device()) return kNotInitialized;
  const Matrix left = matrix(a, ta, m, k, lda), right = matrix(b, tb, k, n, ldb), result = matrix(c, kNormal, m, n, ldc);
  for (int op : {ta, tb})
    if (op != kNormal && op != kTransposed) return kInvalidValue;
  for (const Matrix* x : {&left, &right, &result})
    if (!x->valid() || !library::at(x->address)) return kInvalidValue;
  const CUresult r = library::enqueue(h->stream, "gemm", [=, h = *h, alpha = *alpha, beta = *beta] {
    return multiply<T>(h, left, right, result, k, alpha, beta);
  });
  return r == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cublasCreate_v2(void** handle) {
  if (library::current_device() < 0) return kNotInitialized;
  *handle = new Handle{library::current_device(), nullptr, 0, 0, kDefault};
  return kSuccess;
}
API cublasDestroy_v2(void* handle) {
  if (!handle) return kNotInitialized;
  delete static_cast<Handle*>(handle);
  return kSuccess;
}

// A new stream takes the user's workspace away, as the documentation has it.
API cublasSetStream_v2(void* handle, CUstream stream) {
  if (!handle) return kNotInitialized;
  auto h = static_cast<Handle*>(handle);
  h->stream = stream, h->workspace = 0, h->bytes = 0;
  return kSuccess;
}
API cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
  if (!handle) return kNotInitialized;
  auto h = static_cast<Handle*>(handle);
  const CUdeviceptr p = CUdeviceptr(workspace);
  if (p % 256 != 0 || (bytes > 0 && (!library::at(p) || !library::at(p + bytes - 1)))) return kInvalidValue;
  h->workspace = p, h->bytes = bytes;
  return kSuccess;
}
API cublasSetMathMode(void* handle, int mode) {
  if (!handle) return kNotInitialized;
  if (mode != kDefault && mode != kPedantic && mode != kTF32) return kInvalidValue;
  static_cast<Handle*>(handle)->math = mode;
  return kSuccess;
}

API cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const void* a, int lda, const void* b,
                   int ldb, const float* beta, void* c, int ldc) {
  return gemm<float>(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
API cublasDgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const double* alpha, const void* a, int lda, const void* b,
                   int ldb, const double* beta, void* c, int ldc) {
  return gemm<double>(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
