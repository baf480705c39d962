// Convolutions of libcudnn.so.9 for tests, on the CPU: the sums as they are written, over
// tensors with strides, every access checked.
#pragma once

#include <array>
#include <string>

#include "library.h"

namespace dnn {

enum Type { kFloat = 0 };
enum Kind { kForward, kInputGradient, kWeightGradient };
enum Math { kDefaultMath = 0, kTensorMath = 1, kConvertingMath = 2, kFMAMath = 3 };
enum Activation { kReLU = 1, kIdentity = 5 };

// Tensor is a tensor's descriptor: samples, channels, rows, columns.
struct Tensor {
  int type = -1;
  std::array<int, 4> extent{}, stride{};

  // packed_nhwc: as in a buffer of its own, channels last.
  bool packed_nhwc() const;
};

// Filter is a filter's descriptor: filters, channels, rows, columns, of k×h×w×c.
struct Filter {
  int type = -1;
  std::array<int, 4> extent{};

  size_t at(int k, int c, int i, int j) const;
  size_t elements() const { return size_t(extent[0]) * extent[1] * extent[2] * extent[3]; }
};

struct Geometry {
  int type = -1, pad[2], stride[2], dilation[2], mode = -1, math = kDefaultMath;
};

// Call is a convolution to be done: result = alpha·sum + beta·result, and of a forward one
// the bias of each channel, if there is one.
struct Call {
  Kind kind;
  Tensor x, y;
  Filter w;
  Geometry geometry;
  int algorithm;
  CUdeviceptr at_x, at_w, at_y, work;
  size_t work_bytes;
  double alpha, beta;
  CUdeviceptr bias = 0;
};

// run does a call in the running operation; add and activate give y = alpha·b + beta·y by
// channel and its positive part, NaN kept. They return what was wrong with an access, or "".
std::string run(const Call& c);
std::string add(const Tensor& y, CUdeviceptr at, CUdeviceptr bias, double alpha, double beta);
std::string rectify(const Tensor& y, CUdeviceptr at);

}  // namespace dnn
