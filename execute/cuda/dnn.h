// What is used of cuDNN, and convolutions of it laid out once: the C side of dnn.go.
#pragma once

#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>

// The functions, which versions 8 and 9 have alike: handles and descriptors are pointers,
// enumerations and results int. The library is loaded at run time: its functions
// are addresses. dnnFunctions has their names in this order.
struct dnn {
	int (*create)(void **handle);
	int (*destroy)(void *handle);
	int (*set_stream)(void *handle, CUstream stream);
	const char *(*error_string)(int status);

	int (*create_tensor)(void **tensor);
	int (*set_tensor)(void *tensor, int type, int n, int c, int h, int w, int n_stride, int c_stride, int h_stride, int w_stride);
	int (*destroy_tensor)(void *tensor);
	int (*create_filter)(void **filter);
	int (*set_filter)(void *filter, int type, int format, int k, int c, int h, int w);
	int (*destroy_filter)(void *filter);
	int (*create_convolution)(void **convolution);
	int (*set_convolution)(void *convolution, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w, int mode, int type);
	int (*set_math)(void *convolution, int math);
	int (*destroy_convolution)(void *convolution);
	int (*create_activation)(void **activation);
	int (*set_activation)(void *activation, int mode, int nan, double coefficient);
	int (*destroy_activation)(void *activation);

	// by kind of the convolution: descriptors are those of the inputs, the convolution's and
	// the result's
	int (*algorithms[3])(void *handle, const void *, const void *, const void *convolution, const void *, int asked, int *given, void *list);
	int (*work_bytes[3])(void *handle, const void *, const void *, const void *convolution, const void *, int algorithm, size_t *bytes);
	int (*convolve[3])(void *handle, const void *alpha, const void *, const void *, const void *, const void *, const void *convolution,
	                   int algorithm, void *work, size_t work_bytes, const void *beta, const void *, void *);
	int (*convolve_bias)(void *handle, const void *alpha, const void *x_desc, const void *x, const void *w_desc, const void *w,
	                     const void *convolution, int algorithm, void *work, size_t work_bytes, const void *alpha2, const void *z_desc,
	                     const void *z, const void *bias_desc, const void *bias, const void *activation, const void *y_desc, void *y);
	int (*add_tensor)(void *handle, const void *alpha, const void *a_desc, const void *a, const void *beta, const void *c_desc, void *c);
	int (*activate)(void *handle, const void *activation, const void *alpha, const void *x_desc, const void *x, const void *beta,
	                const void *y_desc, void *y);
};

static int dnn_create(const struct dnn *d, uintptr_t *handle) { return d->create((void **)handle); }
static int dnn_destroy(const struct dnn *d, uintptr_t handle) { return d->destroy((void *)handle); }
static int dnn_set_stream(const struct dnn *d, uintptr_t handle, CUstream s) { return d->set_stream((void *)handle, s); }
static const char *dnn_error(const struct dnn *d, int status) { return d->error_string(status); }

// Values of cuDNN's enumerations.
enum { kFloat = 0 };                                       // cudnnDataType_t
enum { kNHWC = 1 };                                        // cudnnTensorFormat_t
enum { kCrossCorrelation = 1 };                            // cudnnConvolutionMode_t
enum { kDefaultMath = 0, kConverting = 2, kFMAMath = 3 };  // cudnnMathType_t; 1: tensor cores
enum { kReLU = 1, kIdentity = 5 };                         // cudnnActivationMode_t
enum { kNotPropagateNaN = 0, kPropagateNaN = 1 };          // cudnnNanPropagation_t
enum { kDeterministic = 1 };                               // cudnnDeterminism_t
enum { kPrecomputed = 1, kLastSum = 3 };                   // cudnnConvolutionFwdAlgo_t: the one that adds a bias and no ReLU; …
enum { kGradientSum = 1 };                                 // cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdFilterAlgo_t

// As cudnnConvolutionFwdAlgoPerf_t, and alike of the gradients.
struct algorithm {
	int algorithm, status;
	float time;
	size_t memory;
	int determinism, math, reserved[3];
};

enum { kForward, kInputGradient, kWeightGradient };

// A convolution laid out once.
struct convolution {
	int kind, tf32, relu, add;
	int x_extent[4], x_stride[4], y_extent[4], y_stride[4];
	int window, pad, stride;
	CUdeviceptr x, y, w, bias, work;
	size_t work_bytes;

	void *x_desc, *y_desc, *w_desc, *bias_desc, *convolution, *rectifier, *identity;
	int algorithm;
	int fused;  // the bias is added by the convolution
};

// refused says so of a status: CUDNN_STATUS_NOT_SUPPORTED, of version 8, and the same with
// its details, of version 9.
static int refused(int status) { return status == 9 || (status >= 3000 && status < 4000); }

// out_of_memory says so of a status: CUDNN_STATUS_ALLOC_FAILED, of version 8, and
// CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, of version 9.
static int out_of_memory(int status) { return status == 2 || status == 4004; }

// A result is 0, or 16 times the status plus the number of what failed (dnnCalls).
#define CALL(number, call)                              \
	do {                                            \
		int status = (call);                    \
		if (status) return 16 * status + (number); \
	} while (0)

static void operands(const struct convolution *c, const void **desc, CUdeviceptr *at) {
	const void *x = c->x_desc, *y = c->y_desc, *w = c->w_desc;
	switch (c->kind) {
	case kForward:
		desc[0] = x, desc[1] = w, desc[2] = y, at[0] = c->x, at[1] = c->w, at[2] = c->y;
		return;
	case kInputGradient:
		desc[0] = w, desc[1] = y, desc[2] = x, at[0] = c->w, at[1] = c->y, at[2] = c->x;
		return;
	default:
		desc[0] = x, desc[1] = y, desc[2] = w, at[0] = c->x, at[1] = c->y, at[2] = c->w;
	}
}

// describe makes the descriptors.
static int describe(const struct dnn *d, struct convolution *c) {
	const int type = kFloat, *x = c->x_extent, *y = c->y_extent;
	const int *xs = c->x_stride, *ys = c->y_stride;
	CALL(0, d->create_tensor(&c->x_desc));
	CALL(0, d->set_tensor(c->x_desc, type, x[0], x[1], x[2], x[3], xs[0], xs[1], xs[2], xs[3]));
	CALL(0, d->create_tensor(&c->y_desc));
	CALL(0, d->set_tensor(c->y_desc, type, y[0], y[1], y[2], y[3], ys[0], ys[1], ys[2], ys[3]));
	CALL(0, d->create_filter(&c->w_desc));
	CALL(0, d->set_filter(c->w_desc, type, kNHWC, y[1], x[1], c->window, c->window));
	CALL(0, d->create_convolution(&c->convolution));
	CALL(0, d->set_convolution(c->convolution, c->pad, c->pad, c->stride, c->stride, 1, 1, kCrossCorrelation, type));
	if (c->bias) {
		CALL(0, d->create_tensor(&c->bias_desc));
		CALL(0, d->set_tensor(c->bias_desc, type, 1, y[1], 1, 1, y[1], 1, 1, 1));
	}
	CALL(0, d->create_activation(&c->rectifier));
	CALL(0, d->set_activation(c->rectifier, kReLU, kPropagateNaN, 0));
	CALL(0, d->create_activation(&c->identity));
	CALL(0, d->set_activation(c->identity, kIdentity, kNotPropagateNaN, 0));
	return 0;
}

// suits says whether an algorithm gives the same bits in every run, adds products as they
// stand in the sum, not through a transform (Winograd's, Fourier's), whose errors no bound by
// element holds, and multiplies as it may. The two gradients have one that does: ALGO_1.
static int suits(const struct convolution *c, const struct algorithm *a) {
	if (a->status || a->determinism != kDeterministic || a->math == kConverting) return 0;
	if (!c->tf32 && a->math != kDefaultMath && a->math != kFMAMath) return 0;
	return c->kind == kForward ? a->algorithm <= kLastSum : a->algorithm == kGradientSum;
}

// choose takes the first algorithm of cuDNN's list that suits and whose workspace fits. The
// list is cuDNN's estimate, for which nothing is run.
static int choose(const struct dnn *d, struct convolution *c, void *handle) {
	struct algorithm list[32];
	int n = 0, exact = !c->tf32;
	const void *desc[3];
	CUdeviceptr at[3];
	operands(c, desc, at);
	CALL(1, d->set_math(c->convolution, exact ? kFMAMath : kDefaultMath));
	CALL(2, d->algorithms[c->kind](handle, desc[0], desc[1], c->convolution, desc[2], 32, &n, list));
	for (int i = 0; i < n; i++) {
		size_t bytes;
		if (!suits(c, &list[i])) continue;
		if (!exact) CALL(1, d->set_math(c->convolution, list[i].math));
		if (d->work_bytes[c->kind](handle, desc[0], desc[1], c->convolution, desc[2], list[i].algorithm, &bytes)) continue;
		if (bytes > c->work_bytes) continue;
		c->algorithm = list[i].algorithm;
		c->fused = c->bias && c->algorithm == kPrecomputed;
		return 0;
	}
	return 3;
}

static int dnn_prepare(const struct dnn *d, struct convolution *c, uintptr_t handle) {
	int r = describe(d, c);
	return r ? r : choose(d, c, (void *)handle);
}

// dnn_issue issues a convolution and what follows it. Its ReLU is a call of its own, which
// lets NaN pass: that of the call with the bias does not. A call with the bias that cuDNN
// refuses, of which no function tells beforehand, becomes two.
static int dnn_issue(const struct dnn *d, struct convolution *c, uintptr_t h) {
	static const float ones = 1, zeros = 0;
	const void *one = &ones, *zero = &zeros;
	void *handle = (void *)h, *work = (void *)(uintptr_t)c->work, *y = (void *)(uintptr_t)c->y;
	const void *desc[3], *bias = (const void *)(uintptr_t)c->bias;
	CUdeviceptr at[3];
	operands(c, desc, at);
	const void *first = (const void *)(uintptr_t)at[0], *second = (const void *)(uintptr_t)at[1];
	if (c->fused) {
		int status = d->convolve_bias(handle, one, desc[0], first, desc[1], second, c->convolution, c->algorithm, work, c->work_bytes, zero,
		                              c->y_desc, y, c->bias_desc, bias, c->identity, c->y_desc, y);
		c->fused = !refused(status);
		if (c->fused) CALL(5, status);
	}
	if (!c->fused) {
		CALL(4, d->convolve[c->kind](handle, one, desc[0], first, desc[1], second, c->convolution, c->algorithm, work, c->work_bytes,
		                             c->add ? one : zero, desc[2], (void *)(uintptr_t)at[2]));
		if (c->bias) CALL(6, d->add_tensor(handle, one, c->bias_desc, bias, one, c->y_desc, y));
	}
	if (c->relu) CALL(7, d->activate(handle, c->rectifier, one, c->y_desc, y, zero, c->y_desc, y));
	return 0;
}

static void dnn_free(const struct dnn *d, struct convolution *c) {
	if (c->x_desc) d->destroy_tensor(c->x_desc);
	if (c->y_desc) d->destroy_tensor(c->y_desc);
	if (c->bias_desc) d->destroy_tensor(c->bias_desc);
	if (c->w_desc) d->destroy_filter(c->w_desc);
	if (c->convolution) d->destroy_convolution(c->convolution);
	if (c->rectifier) d->destroy_activation(c->rectifier);
	if (c->identity) d->destroy_activation(c->identity);
	free(c);
}
