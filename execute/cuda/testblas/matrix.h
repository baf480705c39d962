// What the libraries for tests have in common: matrices in the memory of the driver's
// devices, of which every access is checked.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "library.h"

namespace testblas {

enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
enum Operation { kNormal = 0, kTransposed = 1 };

// View is the elements of a matrix as it is meant.
template <class T>
struct View {
  T* first;
  size_t leading;
  bool transposed;

  T& at(int row, int column) const { return first[transposed ? row * leading + column : column * leading + row]; }
};

struct Matrix {
  CUdeviceptr address;
  int rows, columns, leading;  // as they lie
  bool transposed;

  bool valid() const { return rows >= 0 && columns >= 0 && leading >= std::max(1, rows); }

  template <class T>
  View<T> view() const {
    return View<T>{reinterpret_cast<T*>(library::at(address)), size_t(leading), transposed};
  }

  // access notes an access to every column that lies there.
  std::string access(size_t size, bool write) const {
    for (int j = 0; j < columns; j++) {
      std::string wrong = library::access(library::at(address) + size_t(j) * leading * size, rows * size, write);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
};

// matrix is a matrix of rows×columns as it is meant.
inline Matrix matrix(const void* p, int op, int rows, int columns, int leading) {
  const bool transposed = op == kTransposed;
  return Matrix{CUdeviceptr(p), transposed ? columns : rows, transposed ? rows : columns, leading, transposed};
}

// rounded is a factor as tensor cores take it: 11 significant bits, the nearest, away from zero
// if two are.
inline float rounded(float v, bool tf32) {
  if (!tf32 || !std::isfinite(v)) return v;
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&v, &bits, sizeof v);
  return v;
}
inline double rounded(double v, bool) { return v; }

// sum is one element of a product, over the terms from first to end.
template <class T>
T sum(const View<T>& a, const View<T>& b, int row, int column, int first, int end, bool tf32) {
  T s = 0;
  for (int k = first; k < end; k++) s += rounded(a.at(row, k), tf32) * rounded(b.at(k, column), tf32);
  return s;
}

// use writes both ends of the workspace, so that an other use of it is found.
inline std::string use(CUdeviceptr workspace, size_t bytes) {
  const size_t end = std::min<size_t>(bytes, 64);
  for (char* p : {library::at(workspace), library::at(workspace + bytes - end)}) {
    std::string wrong = library::access(p, end, true);
    if (!wrong.empty()) return wrong;
    memset(p, 0xff, end);
  }
  return "";
}

}  // namespace testblas
