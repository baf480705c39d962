// What stands around the convolutions of a library: operands that it takes packed only are
// copied, and what it leaves out is done.
#include "rows.h"

namespace dahl {

struct CopyParams {
  Rows rows;
  Strided y, x;
};

template <class T>
DEVICE void copy(const CopyParams& p) {
  each_group(p.rows, [&](auto at) { store(p.y, at, load<T>(p.x, at)); });
}

ENTRY(library_copy_f32, CopyParams, 256) { copy<float>(p); }
ENTRY(library_copy_f64, CopyParams, 256) { copy<double>(p); }

struct MaskParams {
  Rows rows;
  Strided dx, x;
};

// Where x, what a rectifier gave, is not positive, no gradient passes: NaN does not either.
template <class T>
DEVICE void mask(const MaskParams& p) {
  each_group(p.rows, [&](auto at) {
    Group<T> d = load<T>(p.dx, at);
    const Group<T> x = load<T>(p.x, at);
#pragma unroll
    for (int i = 0; i < kGroup; i++)
      if (!(x[i] > T(0))) d[i] = T(0);
    store(p.dx, at, d);
  });
}

ENTRY(library_mask_f32, MaskParams, 256) { mask<float>(p); }

}  // namespace dahl
