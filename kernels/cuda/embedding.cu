// Gradients of embeddings and of learned positions, moved positions, and marks of tokens. Each sum is over a list in
// its order, so a thread has whole sums.
#include "device.h"

namespace dahl {

// EmbeddingParams is mirrored by kernels.embeddingParams.
struct EmbeddingParams {
  uint64_t sum, dy, index;
  int64_t sum_row, dy_row, dy_sample;
  int32_t rows, columns, terms;
  int32_t add;
};

// A warp has 32 columns of every so many rows of the sum, and goes through the list of tokens for
// these. All lanes read the same token.
template <class T>
DEVICE void embedding_dw(const EmbeddingParams& p) {
  const int32_t column = blockIdx.x * 32 + threadIdx.x % 32;
  const int32_t warps = blockDim.x / 32, teams = gridDim.y * warps, team = blockIdx.y * warps + threadIdx.x / 32;
  if (column >= p.columns) return;
  T* sum = global<T>(p.sum) + column;
  const T* dy = global<const T>(p.dy) + column;
  const int32_t* index = global<const int32_t>(p.index);
  if (!p.add)
    for (int32_t v = team; v < p.rows; v += teams) sum[v * p.sum_row] = T(0);
  for (int32_t n = 0; n < p.terms; n++)
    if (index[n] % teams == team) sum[index[n] * p.sum_row] += dy[n * p.dy_row];
}

ENTRY(embedding_dw_f32, EmbeddingParams, 256) { embedding_dw<float>(p); }
ENTRY(embedding_dw_f64, EmbeddingParams, 256) { embedding_dw<double>(p); }

template <class T>
DEVICE void positions_dw(const EmbeddingParams& p) {
  const int32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= p.columns) return;
  for (int32_t t = blockIdx.y; t < p.rows; t += gridDim.y) {
    T* to = global<T>(p.sum) + t * p.sum_row + column;
    const T* dy = global<const T>(p.dy) + t * p.dy_row + column;
    T sum = p.add ? *to : T(0);
    for (int32_t n = 0; n < p.terms; n++) sum += dy[n * p.dy_sample];
    *to = sum;
  }
}

ENTRY(positions_dw_f32, EmbeddingParams, 256) { positions_dw<float>(p); }
ENTRY(positions_dw_f64, EmbeddingParams, 256) { positions_dw<double>(p); }

// ShiftParams is mirrored by gpu.shiftParams. Without a token c is 0.
struct ShiftParams {
  uint64_t y, x, c;
  int64_t y_sample, y_row, x_sample, x_row;
  int32_t samples, positions, columns;
  int32_t from, before;  // positions of x, and of y before them
};

template <class T>
DEVICE void shift(const ShiftParams& p) {
  const int32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= p.columns) return;
  const T c = p.c ? global<const T>(p.c)[column] : T(0);
  for (int32_t row = blockIdx.y; row < p.samples * p.positions; row += gridDim.y) {
    const int32_t n = row / p.positions, t = row % p.positions, from = t - p.before;
    const bool there = from >= 0 && from < p.from;
    global<T>(p.y)[n * p.y_sample + t * p.y_row + column] = there ? global<const T>(p.x)[n * p.x_sample + from * p.x_row + column] : c;
  }
}

ENTRY(shift_f32, ShiftParams, 256) { shift<float>(p); }
ENTRY(shift_f64, ShiftParams, 256) { shift<double>(p); }

// MarksParams is mirrored by gpu.marksParams.
struct MarksParams {
  uint64_t y, index;
  int64_t y_row, index_row;
  int32_t token, behind;
  int32_t samples, positions;
};

ENTRY(marks, MarksParams, 256) {
  const int32_t sample = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= p.samples) return;
  int32_t* y = global<int32_t>(p.y) + p.y_row * sample;
  const int32_t* index = global<const int32_t>(p.index) + p.index_row * sample;
  int32_t before = 0;
  for (int32_t t = 0; t < p.positions; t++) {
    y[t] = p.behind ? before == 1 : index[t] != p.token;
    before += index[t] == p.token;
  }
}

}  // namespace dahl
