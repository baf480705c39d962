// libcublas.so.12 for tests, over the driver library of the tests (../testdriver): the calls
// that dahl makes, as NVIDIA's documentation has them, on the CPU. Matrices are column-major, a
// product is an operation of the handle's stream, every access is checked, and the ends of
// the workspace are written. As cuBLAS does it refuses extents, leading dimensions and modes that make no sense.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "library.h"

namespace {

enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
enum Operation { kNormal = 0, kTransposed = 1 };
enum Math { kDefault = 0, kPedantic = 2, kTF32 = 3 };

struct Handle {
  int device;
  CUstream stream;
  CUdeviceptr workspace;
  size_t bytes;
  int math;
};

struct Matrix {
  CUdeviceptr address;
  int rows, columns, leading;  // as they lie
  bool transposed;

  bool valid() const { return rows >= 0 && columns >= 0 && leading >= std::max(1, rows); }
};

// rounded is a factor as tensor cores take it: 11 significant bits, the nearest, away from zero
// if two are.
float rounded(float v, int math) {
  if (math != kTF32 || !std::isfinite(v)) return v;
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&v, &bits, sizeof v);
  return v;
}
double rounded(double v, int) { return v; }

// use writes both ends of the workspace, so that an other use of it is found.
std::string use(CUdeviceptr workspace, size_t bytes) {
  const size_t end = std::min<size_t>(bytes, 64);
  for (char* p : {library::at(workspace), library::at(workspace + bytes - end)}) {
    std::string wrong = library::access(p, end, true);
    if (!wrong.empty()) return wrong;
    memset(p, 0xff, end);
  }
  return "";
}

// access notes an access to every column of a matrix.
std::string access(const Matrix& m, size_t size, bool write) {
  for (int j = 0; j < m.columns; j++) {
    std::string wrong = library::access(library::at(m.address) + size_t(j) * m.leading * size, m.rows * size, write);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// multiply is c = alpha·a·b + beta·c, of which c is not read where beta is 0.
template <class T>
std::string multiply(const Handle& h, const Matrix& a, const Matrix& b, const Matrix& c, int depth, T alpha, T beta) {
  std::string wrong = access(a, sizeof(T), false);
  if (wrong.empty()) wrong = access(b, sizeof(T), false);
  if (wrong.empty() && beta != T(0)) wrong = access(c, sizeof(T), false);
  if (wrong.empty()) wrong = access(c, sizeof(T), true);
  if (wrong.empty() && h.bytes > 0) wrong = use(h.workspace, h.bytes);
  if (!wrong.empty()) return "cublas: " + wrong;
  const T *from_a = reinterpret_cast<const T*>(library::at(a.address)), *from_b = reinterpret_cast<const T*>(library::at(b.address));
  T* to = reinterpret_cast<T*>(library::at(c.address));
  auto element = [](const T* from, const Matrix& m, int row, int column) {
    return m.transposed ? from[size_t(row) * m.leading + column] : from[size_t(column) * m.leading + row];
  };
  for (int j = 0; j < c.columns; j++)
    for (int i = 0; i < c.rows; i++) {
      T sum = 0;
      for (int k = 0; k < depth; k++)
        sum += rounded(element(from_a, a, i, k), h.math) * rounded(element(from_b, b, k, j), h.math);
      T& v = to[size_t(j) * c.leading + i];
      v = beta == T(0) ? alpha * sum : alpha * sum + beta * v;
    }
  return "";
}

template <class T>
int gemm(void* handle, int ta, int tb, int m, int n, int k, const T* alpha, const void* a, int lda, const void* b, int ldb,
         const T* beta, void* c, int ldc) {
  auto h = static_cast<Handle*>(handle);
  if (!h || h->device != library::current_device()) return kNotInitialized;
  auto matrix = [](const void* p, int op, int rows, int columns, int leading) {
    const bool transposed = op == kTransposed;
    return Matrix{CUdeviceptr(p), transposed ? columns : rows, transposed ? rows : columns, leading, transposed};
  };
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
