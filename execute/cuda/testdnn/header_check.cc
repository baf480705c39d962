// Our declarations of cuDNN beside its own header: `make cudnn-header-check`. Functions take as
// many arguments, each a pointer, a number of the same size, or a float alike; values of
// enumerations and the layout of results are equal.
#include <cudnn.h>

#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>

#include "../testdriver/alike.h"

namespace ours {
#include "../dnn.h"
}

#define FUNCTION(field, name) \
  static_assert(Same<std::remove_all_extents_t<decltype(ours::dnn::field)>, decltype(&name)>::value, #name)
FUNCTION(create, cudnnCreate);
FUNCTION(destroy, cudnnDestroy);
FUNCTION(set_stream, cudnnSetStream);
FUNCTION(error_string, cudnnGetErrorString);
FUNCTION(create_tensor, cudnnCreateTensorDescriptor);
FUNCTION(set_tensor, cudnnSetTensor4dDescriptorEx);
FUNCTION(destroy_tensor, cudnnDestroyTensorDescriptor);
FUNCTION(create_filter, cudnnCreateFilterDescriptor);
FUNCTION(set_filter, cudnnSetFilter4dDescriptor);
FUNCTION(destroy_filter, cudnnDestroyFilterDescriptor);
FUNCTION(create_convolution, cudnnCreateConvolutionDescriptor);
FUNCTION(set_convolution, cudnnSetConvolution2dDescriptor);
FUNCTION(set_math, cudnnSetConvolutionMathType);
FUNCTION(destroy_convolution, cudnnDestroyConvolutionDescriptor);
FUNCTION(create_activation, cudnnCreateActivationDescriptor);
FUNCTION(set_activation, cudnnSetActivationDescriptor);
FUNCTION(destroy_activation, cudnnDestroyActivationDescriptor);
FUNCTION(algorithms, cudnnGetConvolutionForwardAlgorithm_v7);
FUNCTION(algorithms, cudnnGetConvolutionBackwardDataAlgorithm_v7);
FUNCTION(algorithms, cudnnGetConvolutionBackwardFilterAlgorithm_v7);
FUNCTION(work_bytes, cudnnGetConvolutionForwardWorkspaceSize);
FUNCTION(work_bytes, cudnnGetConvolutionBackwardDataWorkspaceSize);
FUNCTION(work_bytes, cudnnGetConvolutionBackwardFilterWorkspaceSize);
FUNCTION(convolve, cudnnConvolutionForward);
FUNCTION(convolve, cudnnConvolutionBackwardData);
FUNCTION(convolve, cudnnConvolutionBackwardFilter);
FUNCTION(convolve_bias, cudnnConvolutionBiasActivationForward);
FUNCTION(add_tensor, cudnnAddTensor);
FUNCTION(activate, cudnnActivationForward);

VALUE(ours::kFloat, CUDNN_DATA_FLOAT);
VALUE(ours::kNHWC, CUDNN_TENSOR_NHWC);
VALUE(ours::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
VALUE(ours::kDefaultMath, CUDNN_DEFAULT_MATH);
VALUE(ours::kConverting, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
VALUE(ours::kFMAMath, CUDNN_FMA_MATH);
VALUE(ours::kReLU, CUDNN_ACTIVATION_RELU);
VALUE(ours::kIdentity, CUDNN_ACTIVATION_IDENTITY);
VALUE(ours::kNotPropagateNaN, CUDNN_NOT_PROPAGATE_NAN);
VALUE(ours::kPropagateNaN, CUDNN_PROPAGATE_NAN);
VALUE(ours::kDeterministic, CUDNN_DETERMINISTIC);
VALUE(ours::kPrecomputed, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
VALUE(ours::kLastSum, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
VALUE(ours::kGradientSum, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
VALUE(ours::kGradientSum, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);

template <class P>
constexpr bool laid_out() {
  using A = ours::algorithm;
  return sizeof(P) == sizeof(A) && offsetof(P, algo) == offsetof(A, algorithm) && offsetof(P, status) == offsetof(A, status) &&
         offsetof(P, memory) == offsetof(A, memory) && offsetof(P, determinism) == offsetof(A, determinism) &&
         offsetof(P, mathType) == offsetof(A, math);
}
static_assert(laid_out<cudnnConvolutionFwdAlgoPerf_t>());
static_assert(laid_out<cudnnConvolutionBwdDataAlgoPerf_t>());
static_assert(laid_out<cudnnConvolutionBwdFilterAlgoPerf_t>());
