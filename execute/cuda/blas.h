// What is used of cuBLAS, as its documentation has it since CUDA 11, and of cuBLASLt, since 12:
// the types of functions, of which the addresses are looked up at run time, and values of
// enumerations. Handles and descriptors are pointers, results cublasStatus_t.
#pragma once

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*blas_create)(void **handle);
typedef int (*blas_destroy)(void *handle);
typedef int (*blas_set_stream)(void *handle, CUstream stream);
typedef int (*blas_set_workspace)(void *handle, void *workspace, size_t bytes);
typedef int (*blas_set_math)(void *handle, int mode);
typedef int (*blas_gemm)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                         const void *b, int ldb, const void *beta, void *c, int ldc);

// scalar is 1 or 0 as a factor of a product.
static inline const void *scalar(int double_precision, int one) {
	static const float f[] = {0, 1};
	static const double d[] = {0, 1};
	return double_precision ? (const void *)&d[one] : &f[one];
}

enum { kBlasAllocFailed = 3, kBlasNotSupported = 15 };  // cublasStatus_t
enum { kBlasNormal = 0, kBlasTransposed = 1 };          // cublasOperation_t
enum { kBlasPedantic = 2, kBlasTF32 = 3 };              // cublasMath_t

typedef int (*lt_create)(void **made);
typedef int (*lt_destroy)(void *object);
typedef int (*lt_operation_create)(void **made, int compute, int scale);
typedef int (*lt_layout_create)(void **made, int type, uint64_t rows, uint64_t columns, int64_t leading);
typedef int (*lt_set)(void *object, int attribute, const void *value, size_t bytes);

// cublasLtMatmulHeuristicResult_t, which begins with the algorithm.
struct lt_choice {
	uint64_t algorithm[8];
	size_t workspace_bytes;
	int state;
	float waves;
	int reserved[4];
};

typedef int (*lt_heuristic)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
                            struct lt_choice *choices, int *found);
typedef int (*lt_matmul)(void *handle, void *operation, const void *alpha, const void *a, void *a_layout, const void *b,
                         void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                         const uint64_t *algorithm, void *workspace, size_t workspace_bytes, CUstream stream);

enum { kLtFloat32 = 0, kLtFloat64 = 1 };                               // cudaDataType
enum { kLtCompute32 = 68, kLtCompute64 = 70, kLtComputeTF32 = 77 };    // cublasComputeType_t
enum { kLtTransA = 3, kLtTransB = 4, kLtEpilogue = 7, kLtVector = 8 };  // cublasLtMatmulDescAttributes_t
// cublasLtEpilogue_t; the sums are those of the columns of the second factor.
enum { kLtPlain = 1, kLtReLU = 2, kLtBias = 4, kLtReLUBias = 6, kLtSums = 512 };
// cublasLtMatmulPreferenceAttributes_t; the alignments of a, b, c and d follow each other.
enum { kLtMostWorkspace = 1, kLtReductions = 3, kLtAlignment = 5 };
enum { kLtReduceApart = 2 };  // cublasLtReductionScheme_t; a sum in one sequence is always allowed
