// Our declarations of cuBLAS and cuBLASLt beside their own headers: `make cublas-header-check`.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cuda.h>
#include <stdint.h>

#include "../testdriver/alike.h"

namespace ours {
#include "../blas.h"
}

#define FUNCTION(type, name) static_assert(Same<ours::type, decltype(&name)>::value, #name)
FUNCTION(blas_create, cublasCreate_v2);
FUNCTION(blas_destroy, cublasDestroy_v2);
FUNCTION(blas_set_stream, cublasSetStream_v2);
FUNCTION(blas_set_workspace, cublasSetWorkspace_v2);
FUNCTION(blas_set_math, cublasSetMathMode);
FUNCTION(blas_gemm, cublasSgemm_v2);
FUNCTION(blas_gemm, cublasDgemm_v2);
FUNCTION(lt_create, cublasLtCreate);
FUNCTION(lt_destroy, cublasLtDestroy);
FUNCTION(lt_operation_create, cublasLtMatmulDescCreate);
FUNCTION(lt_destroy, cublasLtMatmulDescDestroy);
FUNCTION(lt_set, cublasLtMatmulDescSetAttribute);
FUNCTION(lt_layout_create, cublasLtMatrixLayoutCreate);
FUNCTION(lt_destroy, cublasLtMatrixLayoutDestroy);
FUNCTION(lt_create, cublasLtMatmulPreferenceCreate);
FUNCTION(lt_destroy, cublasLtMatmulPreferenceDestroy);
FUNCTION(lt_set, cublasLtMatmulPreferenceSetAttribute);
FUNCTION(lt_heuristic, cublasLtMatmulAlgoGetHeuristic);
FUNCTION(lt_matmul, cublasLtMatmul);

VALUE(ours::kBlasAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
VALUE(ours::kBlasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
VALUE(ours::kBlasNormal, CUBLAS_OP_N);
VALUE(ours::kBlasTransposed, CUBLAS_OP_T);
VALUE(ours::kBlasPedantic, CUBLAS_PEDANTIC_MATH);
VALUE(ours::kBlasTF32, CUBLAS_TF32_TENSOR_OP_MATH);
VALUE(ours::kLtFloat32, CUDA_R_32F);
VALUE(ours::kLtFloat64, CUDA_R_64F);
VALUE(ours::kLtCompute32, CUBLAS_COMPUTE_32F);
VALUE(ours::kLtCompute64, CUBLAS_COMPUTE_64F);
VALUE(ours::kLtComputeTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
VALUE(ours::kLtTransA, CUBLASLT_MATMUL_DESC_TRANSA);
VALUE(ours::kLtTransB, CUBLASLT_MATMUL_DESC_TRANSB);
VALUE(ours::kLtEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
VALUE(ours::kLtVector, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
VALUE(ours::kLtPlain, CUBLASLT_EPILOGUE_DEFAULT);
VALUE(ours::kLtReLU, CUBLASLT_EPILOGUE_RELU);
VALUE(ours::kLtBias, CUBLASLT_EPILOGUE_BIAS);
VALUE(ours::kLtReLUBias, CUBLASLT_EPILOGUE_RELU_BIAS);
VALUE(ours::kLtSums, CUBLASLT_EPILOGUE_BGRADB);
VALUE(ours::kLtMostWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
VALUE(ours::kLtReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
VALUE(ours::kLtAlignment, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
VALUE(ours::kLtAlignment + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
VALUE(ours::kLtAlignment + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
VALUE(ours::kLtAlignment + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
VALUE(ours::kLtReduceApart, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

using Choice = ours::lt_choice;
using Result = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(Choice) == sizeof(Result) && sizeof(Choice::algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(offsetof(Choice, algorithm) == offsetof(Result, algo) && offsetof(Choice, workspace_bytes) == offsetof(Result, workspaceSize));
static_assert(offsetof(Choice, state) == offsetof(Result, state) && offsetof(Choice, waves) == offsetof(Result, wavesCount));
