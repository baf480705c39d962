// libcublasLt.so.12 for tests, over the driver library of the tests (../testdriver): the calls
// that dahl makes, as NVIDIA's documentation has them, on the CPU. It refuses what that says is
// refused, takes declarations at their word (an algorithm needs the alignment that was declared, and its
// product is the one it was chosen for), and splits sums where it may: in parts
// in the workspace, or, where that scheme is allowed, in parts added into the result in
// an order that differs from call to call.
#include <atomic>
#include <vector>

#include "matrix.h"

namespace {

using namespace testblas;

enum Type { kFloat32 = 0, kFloat64 = 1 };
enum Compute { k32 = 68, k32Pedantic = 69, k64 = 70, k64Pedantic = 71, kTF32 = 77 };
enum Epilogue { kPlain = 1, kReLU = 2, kBias = 4, kReLUBias = 6, kBiasGradientA = 256, kBiasGradientB = 512 };
enum Scheme { kOneSequence = 0, kInPlace = 1, kComputeType = 2, kOutputType = 4 };

struct Handle {
  int device;
};

struct MatmulDesc {
  int compute, scale, trans_a = kNormal, trans_b = kNormal, epilogue = kPlain;
  CUdeviceptr bias = 0;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = kInPlace | kComputeType | kOutputType;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

// Algorithm is what cublasLtMatmulAlgo_t holds here.
struct Algorithm {
  uint64_t problem;  // digest of what it was chosen for
  uint64_t workspace;
  uint32_t splits, scheme;
  uint32_t alignment[4];
  uint64_t unused[3];
};
static_assert(sizeof(Algorithm) == 64);

struct Result {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Result) == 96);

// Problem is a product without its addresses.
struct Problem {
  const MatmulDesc* operation;
  const Layout *a, *b, *c, *d;

  int m() const { return int(d->rows); }
  int n() const { return int(d->columns); }
  int k() const { return int(operation->trans_a == kNormal ? a->columns : a->rows); }
  size_t size() const { return d->type == kFloat64 ? 8 : 4; }
  bool gradient() const { return operation->epilogue == kBiasGradientA || operation->epilogue == kBiasGradientB; }
  bool vector() const { return gradient() || (operation->epilogue & kBias) != 0; }

  uint64_t digest() const {
    uint64_t h = 14695981039346656037u;
    auto add = [&](uint64_t v) { h = (h ^ v) * 1099511628211u; };
    for (int v : {operation->compute, operation->trans_a, operation->trans_b, operation->epilogue}) add(uint64_t(v));
    for (const Layout* l : {a, b, c, d}) add(l->rows), add(l->columns), add(uint64_t(l->leading));
    return h;
  }

  int check() const {
    if (!operation || !a || !b || !c || !d) return kInvalidValue;
    for (const Layout* l : {a, b, c, d})
      if (l->rows < 1 || l->columns < 1 || l->rows > INT32_MAX || l->columns > INT32_MAX || l->leading < int64_t(l->rows)) return kInvalidValue;
    auto fits = [](const Layout* l, int op, int rows, int columns) {
      return (op == kNormal ? l->rows : l->columns) == uint64_t(rows) && (op == kNormal ? l->columns : l->rows) == uint64_t(columns);
    };
    if (!fits(a, operation->trans_a, m(), k()) || !fits(b, operation->trans_b, k(), n()) || !fits(c, kNormal, m(), n())) return kInvalidValue;
    if (vector() && !operation->bias) return kInvalidValue;
    return supported() ? kSuccess : kNotSupported;
  }

  // supported are the combinations of the documentation's table; it says nothing of gradients of
  // biases in float64.
  bool supported() const {
    const int type = operation->compute == k64 || operation->compute == k64Pedantic ? kFloat64 : kFloat32;
    for (int t : {operation->scale, a->type, b->type, c->type, d->type})
      if (t != type) return false;
    switch (operation->epilogue) {
      case kPlain: case kReLU: case kBias: case kReLUBias: break;
      case kBiasGradientA: case kBiasGradientB: if (type == kFloat64) return false; break;
      default: return false;
    }
    return !vector() || operation->bias % size() == 0;
  }
};

// bounds are where the parts of a split sum begin and end.
std::vector<int> bounds(int k, int splits) {
  std::vector<int> at;
  for (int s = 0; s <= splits; s++) at.push_back(int(int64_t(k) * s / splits));
  return at;
}

// Call is a product with its addresses.
template <class T>
struct Call {
  Matrix a, b, d;
  int depth, epilogue;
  T alpha, beta;
  CUdeviceptr bias, workspace;
  size_t workspace_bytes;
  Algorithm algorithm;
  bool tf32;

  Matrix vector() const {
    const int n = epilogue == kBiasGradientB ? d.columns : d.rows;
    return Matrix{bias, n, epilogue == kPlain || epilogue == kReLU ? 0 : 1, n, false};
  }
  bool gradient() const { return epilogue == kBiasGradientA || epilogue == kBiasGradientB; }

  std::string access() const {
    std::string wrong = a.access(sizeof(T), false);
    if (wrong.empty()) wrong = b.access(sizeof(T), false);
    if (wrong.empty() && beta != T(0)) wrong = d.access(sizeof(T), false);
    if (wrong.empty()) wrong = d.access(sizeof(T), true);
    if (wrong.empty()) wrong = vector().access(sizeof(T), gradient());
    if (wrong.empty() && workspace_bytes > 0) wrong = use(workspace, workspace_bytes);
    if (wrong.empty() && algorithm.workspace > 0) wrong = library::access(library::at(workspace), algorithm.workspace, true);
    return wrong;
  }

  // total adds the parts of a sum up, from one on, as the scheme has it.
  T total(const T* parts, uint64_t first) const {
    T s = 0;
    for (uint32_t i = 0; i < algorithm.splits; i++) s += parts[(i + first) % algorithm.splits];
    return s;
  }

  std::string run() const {
    static std::atomic<uint64_t> calls;
    std::string wrong = access();
    if (!wrong.empty()) return "cublasLt: " + wrong;
    const std::vector<int> at = bounds(depth, int(algorithm.splits));
    const uint64_t first = algorithm.scheme == kInPlace ? calls++ : 0;
    std::vector<T> parts(algorithm.splits);
    T* kept = algorithm.scheme == kComputeType ? reinterpret_cast<T*>(library::at(workspace)) : nullptr;
    const View<T> from_a = a.view<T>(), from_b = b.view<T>(), to = d.view<T>(), beside = vector().template view<T>();
    for (int j = 0; j < d.columns; j++)
      for (int i = 0; i < d.rows; i++) {
        T* p = kept ? kept + (size_t(j) * d.rows + i) * algorithm.splits : parts.data();
        for (uint32_t s = 0; s < algorithm.splits; s++) p[s] = sum(from_a, from_b, i, j, at[s], at[s + 1], tf32);
        T& v = to.at(i, j);
        v = after(beta == T(0) ? alpha * total(p, first) : alpha * total(p, first) + beta * v, beside, i);
      }
    if (gradient()) sums(from_a, from_b, beside);
    return "";
  }

  // after is the epilogue of an element. Of NaN its ReLU makes 0, as max(x, 0) may.
  T after(T v, const View<T>& bias, int row) const {
    if (gradient()) return v;
    if (epilogue & kBias) v += bias.at(row, 0);
    if (epilogue & kReLU) v = v > T(0) ? v : T(0);
    return v;
  }

  // sums stores the gradient of the bias: the sums of the rows of a, or of the columns of b.
  void sums(const View<T>& from_a, const View<T>& from_b, const View<T>& to) const {
    for (int i = 0; i < vector().rows; i++) {
      T s = 0;
      for (int k = 0; k < depth; k++) s += rounded(epilogue == kBiasGradientA ? from_a.at(i, k) : from_b.at(k, i), tf32);
      to.at(i, 0) = s;
    }
  }
};

// set stores a value if its size is that of the attribute.
template <class T>
int set(T& attribute, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) return kInvalidValue;
  memcpy(&attribute, value, bytes);
  return kSuccess;
}

template <class T>
int matmul(const Problem& p, const void* alpha, const void* beta, const void* a, const void* b, void* d, const Algorithm& algorithm,
           void* workspace, size_t bytes, CUstream stream) {
  const MatmulDesc& o = *p.operation;
  const Call<T> call{matrix(a, o.trans_a, p.m(), p.k(), int(p.a->leading)), matrix(b, o.trans_b, p.k(), p.n(), int(p.b->leading)),
                     matrix(d, kNormal, p.m(), p.n(), int(p.d->leading)), p.k(), o.epilogue, *static_cast<const T*>(alpha),
                     *static_cast<const T*>(beta), o.bias, CUdeviceptr(workspace), bytes, algorithm, o.compute == kTF32};
  return library::enqueue(stream, "matmul", [=] { return call.run(); }) == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cublasLtCreate(Handle** made) {
  if (!made) return kInvalidValue;
  if (library::current_device() < 0) return kNotInitialized;
  *made = new Handle{library::current_device()};
  return kSuccess;
}
API cublasLtDestroy(Handle* h) {
  if (!h) return kInvalidValue;
  delete h;
  return kSuccess;
}

API cublasLtMatmulDescCreate(MatmulDesc** made, int compute, int scale) {
  *made = new MatmulDesc;
  (*made)->compute = compute, (*made)->scale = scale;
  return kSuccess;
}
API cublasLtMatmulDescDestroy(MatmulDesc* o) {
  delete o;
  return kSuccess;
}
API cublasLtMatmulDescSetAttribute(MatmulDesc* o, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 3: return set(o->trans_a, value, bytes);
    case 4: return set(o->trans_b, value, bytes);
    case 7: return set(o->epilogue, value, bytes);
    case 8: return set(o->bias, value, bytes);
  }
  return kInvalidValue;
}

API cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *made = new Layout{type, rows, columns, leading};
  return kSuccess;
}
API cublasLtMatrixLayoutDestroy(Layout* l) {
  delete l;
  return kSuccess;
}

API cublasLtMatmulPreferenceCreate(Preference** made) {
  *made = new Preference;
  return kSuccess;
}
API cublasLtMatmulPreferenceDestroy(Preference* p) {
  delete p;
  return kSuccess;
}
API cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 1: return set(p->workspace, value, bytes);
    case 3: return set(p->schemes, value, bytes);
    case 5: case 6: case 7: case 8: return set(p->alignment[attribute - 5], value, bytes);
  }
  return kInvalidValue;
}

// No algorithm does with matrices that are aligned to less than an element; then there are none,
// and the call succeeds.
API cublasLtMatmulAlgoGetHeuristic(Handle* h, const MatmulDesc* operation, const Layout* a, const Layout* b, const Layout* c, const Layout* d,
                                   const Preference* preference, int wanted, Result* results, int* found) {
  if (!h) return kNotInitialized;
  if (wanted < 1 || !preference || !results || !found) return kInvalidValue;
  const Problem p{operation, a, b, c, d};
  if (int status = p.check()) return status;
  *found = 0;
  for (uint32_t bytes : preference->alignment)
    if (bytes < p.size()) return kSuccess;
  Algorithm best = {p.digest(), 0, 1, kOneSequence, {}, {}};
  std::copy_n(preference->alignment, 4, best.alignment);
  constexpr uint32_t splits = 3;
  const uint64_t parts = uint64_t(p.m()) * p.n() * p.size() * splits;
  if (p.k() >= int(splits) && (preference->schemes & kInPlace))
    best.splits = splits, best.scheme = kInPlace;
  else if (p.k() >= int(splits) && (preference->schemes & kComputeType) && preference->workspace >= parts)
    best.splits = splits, best.scheme = kComputeType, best.workspace = parts;
  *results = Result{best, size_t(best.workspace), kSuccess, 1, {}};
  *found = 1;
  return kSuccess;
}

// Result and addend have to be one matrix with one descriptor, as dahl has them; without an
// algorithm cuBLASLt would choose one at each call.
API cublasLtMatmul(Handle* h, const MatmulDesc* operation, const void* alpha, const void* a, const Layout* a_layout, const void* b,
                   const Layout* b_layout, const void* beta, const void* c, const Layout* c_layout, void* d, const Layout* d_layout,
                   const Algorithm* algorithm, void* workspace, size_t bytes, CUstream stream) {
  if (!h || h->device != library::current_device()) return kNotInitialized;
  const Problem p{operation, a_layout, b_layout, c_layout, d_layout};
  if (int status = p.check()) return status;
  if (!alpha || !beta || !a || !b || c != d || c_layout != d_layout || !algorithm || algorithm->problem != p.digest()) return kInvalidValue;
  if (CUdeviceptr(workspace) % 256 != 0 || bytes < algorithm->workspace) return kInvalidValue;
  if (bytes > 0 && (!library::at(CUdeviceptr(workspace)) || !library::at(CUdeviceptr(workspace) + bytes - 1))) return kInvalidValue;
  const void* matrices[] = {a, b, c, d};
  for (int i = 0; i < 4; i++) {
    if (!library::at(CUdeviceptr(matrices[i]))) return kInvalidValue;
    if (CUdeviceptr(matrices[i]) % algorithm->alignment[i] != 0) return kNotSupported;
  }
  auto run = p.size() == 8 ? matmul<double> : matmul<float>;
  return run(p, alpha, beta, a, b, d, *algorithm, workspace, bytes, stream);
}
