/* SPDX-FileCopyrightText: 2026 The KokkosNN authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KOKKOSNN_KOKKOSNN_H
#define KOKKOSNN_KOKKOSNN_H

#include <stddef.h>
#include <stdint.h>

/* KokkosNN for C, and for all that calls C: the operators on memory that the caller owns. The library is
 * libkokkosnn_c (CMake: KokkosNN::c), with Kokkos inside. This header is valid C11 and C++.
 *
 *     float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, y[2][3];
 *     const int64_t extents[] = {2, 3};
 *     const kokkosnn_tensor from = kokkosnn_row_major(x, KOKKOSNN_F32, 2, extents);
 *     const kokkosnn_tensor to   = kokkosnn_row_major(y, KOKKOSNN_F32, 2, extents);
 *     if (kokkosnn_softmax(NULL, &from, &to, NULL) != KOKKOSNN_SUCCESS) fprintf(stderr, "%s\n", kokkosnn_last_error());
 *
 * All operators share these rules:
 *
 * Contract   a function does what the C++ function of its name does: formula, accuracy, NaN and infinities, what may be
 *            in place, reads and writes stand in the C++ header that is named beside it. Arguments are the C++
 *            function's, with options last. A tensor that may be NULL is marked as optional.
 * Types      those that the C++ library holds compiled: all rows of a call hold one type, F64, F32, F16 or BF16; but
 *            softmax, log_softmax and logsumexp also go from F16 or BF16 to F32 and from F32 to F16 or BF16, and cast
 *            from each type to each other. "The accumulator's type" is F64 where the rows are F64, else F32.
 * Ordering   on a GPU a call enqueues on exec's stream and returns; the host waits for nothing. On a host the results
 *            are there when the function returns.
 * Threads    functions may be called by several threads at once. On a host the threads of a call are OpenMP's; a
 *            library for Kokkos' backend Threads takes calls of the thread alone that made the first one.
 * Start      the first call starts Kokkos, on its device, and ends it when the process exits. Where the process runs
 *            the same Kokkos already (a shared one), that is used and left running.
 * Device     one of a process: a GPU other than that of the first call is an error.
 * Errors     no exception leaves a function. On another status than KOKKOSNN_SUCCESS nothing was written (of
 *            KOKKOSNN_FAILURE: outputs may be incomplete), and kokkosnn_last_error has the library's message.
 * Versions   a struct of options begins with its size, and gets further members at its end alone: programs that were
 *            compiled with this header run with any later library of the same soname. */

#if defined(_WIN32)
#define KOKKOSNN_C_API
#else
#define KOKKOSNN_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- what went wrong ------------------------------------------------------------------------------------------- */

typedef enum kokkosnn_status {
  KOKKOSNN_SUCCESS          = 0,
  KOKKOSNN_INVALID_ARGUMENT = 1, /* an argument is wrong; nothing was written */
  KOKKOSNN_OUT_OF_MEMORY    = 2,
  KOKKOSNN_FAILURE          = 3 /* of the device or of Kokkos */
} kokkosnn_status;

/* The message of this thread's last failure, "" if there was none; valid until the next failure of this thread. */
KOKKOSNN_C_API const char* kokkosnn_last_error(void);

/* --- the library ----------------------------------------------------------------------------------------------- */

/* "major.minor.patch" */
KOKKOSNN_C_API const char* kokkosnn_version(void);

/* JSON: version, kokkos (its version), backend (Kokkos' name: OpenMP, Cuda, ...), compiler, and cpu_level, the level of
 * x86-64 whose kernels run, empty where kernels are compiled once. May be called at any time
 * and starts nothing. */
KOKKOSNN_C_API const char* kokkosnn_configuration(void);

/* --- where a call runs ------------------------------------------------------------------------------------------ */

/* The numbers are DLPack's. A library serves the one kind that it was built for. */
typedef enum kokkosnn_device_kind {
  KOKKOSNN_DEVICE_DEFAULT = 0, /* whatever the library was built for */
  KOKKOSNN_DEVICE_HOST    = 1,
  KOKKOSNN_DEVICE_CUDA    = 2,
  KOKKOSNN_DEVICE_HIP     = 10
} kokkosnn_device_kind;

/* NULL in place of it, or all zeros but for an index of -1: the default stream of the current device. A stream on which
 * a graph is captured must have had a call before; another one is KOKKOSNN_INVALID_ARGUMENT. */
typedef struct kokkosnn_exec {
  void* stream;         /* cudaStream_t or hipStream_t; NULL: the backend's default stream; of a host always NULL */
  int32_t device_kind;  /* kokkosnn_device_kind */
  int32_t device_index; /* -1: the current device where the call is the first, else the one that Kokkos runs on */
} kokkosnn_exec;

/* Forgets what the library keeps for exec's stream (an execution-space instance). Before a stream is destroyed, after
 * its calls; not needed for streams that live as long as the process. Nothing on a host. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_release_stream(const kokkosnn_exec* exec);

/* --- tensors ---------------------------------------------------------------------------------------------------- */

typedef enum kokkosnn_dtype {
  KOKKOSNN_F64    = 1,
  KOKKOSNN_F32    = 2,
  KOKKOSNN_F16    = 3, /* IEEE 754 binary16 */
  KOKKOSNN_BF16   = 4, /* bfloat16 */
  KOKKOSNN_BOOL   = 5, /* one byte, 0 or 1 */
  KOKKOSNN_I8     = 6,
  KOKKOSNN_I16    = 7,
  KOKKOSNN_I32    = 8,
  KOKKOSNN_I64    = 9,
  KOKKOSNN_U8     = 10,
  KOKKOSNN_U16    = 11,
  KOKKOSNN_U32    = 12,
  KOKKOSNN_U64    = 13,
  KOKKOSNN_F8E4M3 = 14 /* float8.hpp's float8_e4m3; of quantised results alone */
} kokkosnn_dtype;

#define KOKKOSNN_MAX_RANK 8

/* Memory of the device that the call runs on. */
typedef struct kokkosnn_tensor {
  void* data;                         /* element (0, 0, ...), aligned to an element; not written through by inputs */
  int32_t dtype;                      /* kokkosnn_dtype */
  int32_t rank;                       /* 0 to 8 */
  int64_t extents[KOKKOSNN_MAX_RANK]; /* those beyond the rank are not read */
  int64_t strides[KOKKOSNN_MAX_RANK]; /* in elements; of inputs also 0 (broadcast), of all also negative */
} kokkosnn_tensor;

/* A tensor without gaps, the last axis fastest, as C has its arrays. */
static inline kokkosnn_tensor kokkosnn_row_major(void* data, kokkosnn_dtype dtype, int32_t rank,
                                                 const int64_t* extents) {
  kokkosnn_tensor tensor = {NULL, 0, 0, {0}, {0}};
  int64_t stride         = 1;
  int32_t k;
  tensor.data  = data;
  tensor.dtype = (int32_t)dtype;
  tensor.rank  = rank;
  for (k = (rank < KOKKOSNN_MAX_RANK ? rank : KOKKOSNN_MAX_RANK) - 1; k >= 0; --k) {
    tensor.extents[k] = extents[k];
    tensor.strides[k] = stride;
    stride *= extents[k];
  }
  return tensor;
}

/* --- options ---------------------------------------------------------------------------------------------------- */

/* Make one by its initialiser, which has the defaults and the size, and then set what differs:
 *     kokkosnn_softmax_options options = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
 *     options.axis = 0;
 * NULL in place of options stands for the defaults. options.hpp, mask.hpp and segmented.hpp say what each member
 * means; attention.hpp, matmul.hpp and elementwise.hpp have those of their operators. */

typedef enum kokkosnn_masked_row { KOKKOSNN_MASKED_ROW_NAN = 0, KOKKOSNN_MASKED_ROW_ZERO = 1 } kokkosnn_masked_row;
typedef enum kokkosnn_determinism { KOKKOSNN_RUN_TO_RUN = 0, KOKKOSNN_BATCH_INVARIANT = 1 } kokkosnn_determinism;
typedef enum kokkosnn_reduction {
  KOKKOSNN_REDUCTION_NONE = 0,
  KOKKOSNN_REDUCTION_MEAN = 1,
  KOKKOSNN_REDUCTION_SUM  = 2
} kokkosnn_reduction;

typedef struct kokkosnn_softmax_options {
  size_t size;
  double scale;        /* factor of the logits */
  int32_t axis;        /* the reduced axis; negative counts from the end */
  int32_t masked_row;  /* kokkosnn_masked_row */
  int32_t determinism; /* kokkosnn_determinism */
  int32_t axes;        /* neighbouring axes that are reduced together, from `axis` on; at one stride */
} kokkosnn_softmax_options;
#define KOKKOSNN_SOFTMAX_OPTIONS_INIT \
  {sizeof(kokkosnn_softmax_options), 1.0, -1, KOKKOSNN_MASKED_ROW_NAN, KOKKOSNN_RUN_TO_RUN, 1}

typedef struct kokkosnn_masked_softmax_options {
  size_t size;
  double scale;
  double softcap;               /* 0: none */
  const kokkosnn_tensor* sinks; /* optional: one logit a head; of the rows' type or F32 */
  int32_t masked_row;           /* kokkosnn_masked_row */
  int32_t determinism;          /* kokkosnn_determinism */
} kokkosnn_masked_softmax_options;
#define KOKKOSNN_MASKED_SOFTMAX_OPTIONS_INIT \
  {sizeof(kokkosnn_masked_softmax_options), 1.0, 0.0, NULL, KOKKOSNN_MASKED_ROW_NAN, KOKKOSNN_RUN_TO_RUN}

typedef struct kokkosnn_cross_entropy_options {
  size_t size;
  int64_t ignore_index;
  double label_smoothing;
  double z_loss;
  double softcap;          /* 0: none */
  double gradient_scale;   /* cross_entropy_with_gradient: the gradient of what follows the loss */
  int32_t reduction;       /* kokkosnn_reduction */
  int32_t check_labels;    /* not 0: labels out of range are an error, for which the host waits */
  int32_t determinism;     /* kokkosnn_determinism */
  int32_t axis;            /* the axis of the classes; negative counts from the end */
  int64_t first_class;     /* cross_entropy_backward: the class of the first column */
  int64_t classes;         /* cross_entropy_backward, from_lse: all classes, of which columns are some */
  int32_t weighted_z_loss; /* 0: lse^2 does not have the weight of the row's class */
} kokkosnn_cross_entropy_options;
#define KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT \
  {sizeof(kokkosnn_cross_entropy_options),  \
   -100,                                    \
   0.0,                                     \
   0.0,                                     \
   0.0,                                     \
   1.0,                                     \
   KOKKOSNN_REDUCTION_MEAN,                 \
   0,                                       \
   KOKKOSNN_RUN_TO_RUN,                     \
   -1,                                      \
   0,                                       \
   0,                                       \
   1}

typedef struct kokkosnn_soft_cross_entropy_options {
  size_t size;
  double label_smoothing;
  double gradient_scale; /* soft_cross_entropy_with_gradient: the gradient of what follows the loss */
  int32_t reduction;     /* kokkosnn_reduction */
  int32_t determinism;   /* kokkosnn_determinism */
  int32_t axis;          /* the axis of the classes; negative counts from the end */
} kokkosnn_soft_cross_entropy_options;
#define KOKKOSNN_SOFT_CROSS_ENTROPY_OPTIONS_INIT \
  {sizeof(kokkosnn_soft_cross_entropy_options), 0.0, 1.0, KOKKOSNN_REDUCTION_MEAN, KOKKOSNN_RUN_TO_RUN, -1}

typedef struct kokkosnn_rms_norm_options {
  size_t size;
  double epsilon;
  double weight_offset; /* added to each weight */
  int32_t axis;
  int32_t determinism; /* kokkosnn_determinism */
} kokkosnn_rms_norm_options;
#define KOKKOSNN_RMS_NORM_OPTIONS_INIT {sizeof(kokkosnn_rms_norm_options), 1e-6, 0.0, -1, KOKKOSNN_RUN_TO_RUN}

typedef struct kokkosnn_layer_norm_options {
  size_t size;
  double epsilon;
  int32_t axis;
  int32_t determinism; /* kokkosnn_determinism */
} kokkosnn_layer_norm_options;
#define KOKKOSNN_LAYER_NORM_OPTIONS_INIT {sizeof(kokkosnn_layer_norm_options), 1e-5, -1, KOKKOSNN_RUN_TO_RUN}

typedef struct kokkosnn_column_sums_options {
  size_t size;
  int32_t axis;     /* the axis that stays; negative counts from the end */
  int32_t reserved; /* 0 */
} kokkosnn_column_sums_options;
#define KOKKOSNN_COLUMN_SUMS_OPTIONS_INIT {sizeof(kokkosnn_column_sums_options), -1, 0}

typedef struct kokkosnn_segmented_options {
  size_t size;
  double scale;
  int32_t masked_row; /* kokkosnn_masked_row */
  int32_t
      check_offsets; /* not 0: offsets that do not ascend or leave the values are an error, for which the host waits */
  int64_t segments;  /* not 0: row_offsets is an index, the row of each element, and there are so many rows */
} kokkosnn_segmented_options;
#define KOKKOSNN_SEGMENTED_OPTIONS_INIT {sizeof(kokkosnn_segmented_options), 1.0, KOKKOSNN_MASKED_ROW_NAN, 0, 0}

typedef enum kokkosnn_precision {
  KOKKOSNN_PRECISION_EXACT            = 0,
  KOKKOSNN_PRECISION_TENSOR_FLOAT32X3 = 1,
  KOKKOSNN_PRECISION_TENSOR_FLOAT32   = 2
} kokkosnn_precision;

typedef enum kokkosnn_attention_axes {
  KOKKOSNN_BATCH_HEAD_SEQUENCE_DIM = 0,
  KOKKOSNN_BATCH_SEQUENCE_HEAD_DIM = 1
} kokkosnn_attention_axes;

typedef enum kokkosnn_attention_diagonal {
  KOKKOSNN_DIAGONAL_FIRST = 0, /* query i is at key i */
  KOKKOSNN_DIAGONAL_LAST  = 1  /* the last query is at the last key */
} kokkosnn_attention_diagonal;

typedef struct kokkosnn_attention_options {
  size_t size;
  double scale;                 /* factor of q k^T; 0: 1 / sqrt(dim) */
  double softcap;               /* 0: none */
  const kokkosnn_tensor* sinks; /* optional: one logit a head of q; of q's type or F32 */
  int32_t masked_row;           /* kokkosnn_masked_row */
  int32_t axes;                 /* kokkosnn_attention_axes: the order of all tensors' axes but lse's */
  int32_t precision;            /* kokkosnn_precision, of F32 on GPUs that have TF32; the gradients are exact */
  int32_t diagonal;             /* kokkosnn_attention_diagonal, of causal masks, windows and ALiBi */
  double dropout_probability;   /* dropout.hpp: that a weight becomes 0, below 1; 0: no dropout */
  uint64_t dropout_seed;
  uint32_t dropout_offset;
  int32_t reserved; /* 0 */
} kokkosnn_attention_options;
#define KOKKOSNN_ATTENTION_OPTIONS_INIT \
  {sizeof(kokkosnn_attention_options),  \
   0.0,                                 \
   0.0,                                 \
   NULL,                                \
   KOKKOSNN_MASKED_ROW_NAN,             \
   KOKKOSNN_BATCH_HEAD_SEQUENCE_DIM,    \
   KOKKOSNN_PRECISION_EXACT,            \
   KOKKOSNN_DIAGONAL_FIRST,             \
   0.0,                                 \
   0,                                   \
   0,                                   \
   0}

typedef enum kokkosnn_matmul_provider {
  KOKKOSNN_MATMUL_AUTOMATIC = 0, /* cuBLAS or rocBLAS for what it has, where built with it */
  KOKKOSNN_MATMUL_OWN       = 1,
  KOKKOSNN_MATMUL_VENDOR    = 2 /* cuBLAS, rocBLAS, on hosts BLAS; an error where it has no such product */
} kokkosnn_matmul_provider;

typedef struct kokkosnn_matmul_options {
  size_t size;
  double alpha;                       /* factor of the product; 0: a and b are not read */
  double beta;                        /* factor of c; 0: c is not read */
  int32_t precision;                  /* kokkosnn_precision, of F32 on GPUs that have TF32 */
  int32_t determinism;                /* kokkosnn_determinism: on a GPU batch-invariant products do not split k */
  const kokkosnn_tensor* rows;        /* optional: an integer a row of the product: its row of a, as GatheredRows */
  const kokkosnn_tensor* row_offsets; /* optional: one integer more than c has rows: these are sums, as SummedRows */
  int32_t provider;                   /* kokkosnn_matmul_provider */
  int32_t reserved;                   /* 0 */
} kokkosnn_matmul_options;
#define KOKKOSNN_MATMUL_OPTIONS_INIT                                                                     \
  {sizeof(kokkosnn_matmul_options), 1.0, 0.0, KOKKOSNN_PRECISION_EXACT, KOKKOSNN_RUN_TO_RUN, NULL, NULL, \
   KOKKOSNN_MATMUL_AUTOMATIC,       0}

typedef enum kokkosnn_rope_form { KOKKOSNN_ROPE_HALF_ROTATED = 0, KOKKOSNN_ROPE_INTERLEAVED = 1 } kokkosnn_rope_form;

typedef struct kokkosnn_rope_options {
  size_t size;
  int64_t rotary_dims;     /* elements of a row that are rotated, the first ones; even. 0: all */
  int64_t position_offset; /* added to each position */
  double theta;            /* without tables: base of the frequencies */
  double position_scale;   /* without tables: factor of positions */
  int32_t form;            /* kokkosnn_rope_form */
  int32_t sequence_axis;   /* the axis of positions; negative counts from the end. Of rank 2 -3 is axis 0 */
  int32_t check_positions; /* not 0: positions outside of the tables are an error, for which the host waits */
  int32_t reserved;        /* 0 */
} kokkosnn_rope_options;
#define KOKKOSNN_ROPE_OPTIONS_INIT \
  {sizeof(kokkosnn_rope_options), 0, 0, 10000.0, 1.0, KOKKOSNN_ROPE_HALF_ROTATED, -3, 0, 0}

typedef struct kokkosnn_rms_norm_rope_options {
  size_t size;
  double epsilon;
  double weight_offset; /* added to each weight */
  int64_t rotary_dims;  /* from here on as kokkosnn_rope_options */
  int64_t position_offset;
  double theta;
  double position_scale;
  int32_t form; /* kokkosnn_rope_form */
  int32_t sequence_axis;
  int32_t check_positions;
  int32_t reserved; /* 0 */
} kokkosnn_rms_norm_rope_options;
#define KOKKOSNN_RMS_NORM_ROPE_OPTIONS_INIT \
  {sizeof(kokkosnn_rms_norm_rope_options), 1e-6, 0.0, 0, 0, 10000.0, 1.0, KOKKOSNN_ROPE_HALF_ROTATED, -3, 0, 0}

typedef enum kokkosnn_gelu_form { KOKKOSNN_GELU_ERF = 0, KOKKOSNN_GELU_TANH = 1 } kokkosnn_gelu_form;

typedef struct kokkosnn_gelu_options {
  size_t size;
  int32_t form;     /* kokkosnn_gelu_form */
  int32_t reserved; /* 0 */
} kokkosnn_gelu_options;
#define KOKKOSNN_GELU_OPTIONS_INIT {sizeof(kokkosnn_gelu_options), KOKKOSNN_GELU_ERF, 0}

/* Which columns of a row take part, and what is added to their logits: all parts that are given, as in mask.hpp. NULL
 * in place of a mask masks nothing. */
typedef struct kokkosnn_mask {
  size_t size;
  const kokkosnn_tensor* boolean;      /* optional: BooleanMask, of BOOL, I8 or U8 */
  const kokkosnn_tensor* bias;         /* optional: AdditiveBias, of the rows' type or F32 */
  const kokkosnn_tensor* lengths;      /* optional: RowLengths, of I32 or I64 */
  const kokkosnn_tensor* alibi_slopes; /* optional: Alibi, rank 1, of the rows' type or F32 */
  int64_t causal_offset;
  int64_t window_left;  /* INT64_MAX: unbounded */
  int64_t window_right; /* INT64_MAX: unbounded */
  int64_t window_offset;
  int64_t alibi_offset;
  int32_t is_causal;                       /* not 0: CausalMask{causal_offset} */
  int32_t has_window;                      /* not 0: SlidingWindow{window_left, window_right, window_offset} */
  const kokkosnn_tensor* diagonal_offsets; /* optional: DiagonalOffsets, of I32 or I64 */
  const kokkosnn_tensor* row_scales;       /* optional: RowScales, of the rows' type or F32; not in attention */
} kokkosnn_mask;
#define KOKKOSNN_MASK_INIT \
  {sizeof(kokkosnn_mask), NULL, NULL, NULL, NULL, 0, INT64_MAX, INT64_MAX, 0, 0, 0, 0, NULL, NULL}

/* --- softmax.hpp ------------------------------------------------------------------------------------------------ */

/* y = torch.softmax(scale * x, axis); y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                const kokkosnn_tensor* y, const kokkosnn_softmax_options* options);
/* y = torch.log_softmax(scale * x, axis); y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_log_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                    const kokkosnn_tensor* y, const kokkosnn_softmax_options* options);
/* lse = torch.logsumexp(scale * x, axis), x's extents without the axis. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_logsumexp(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                  const kokkosnn_tensor* lse, const kokkosnn_softmax_options* options);

/* --- gradients.hpp ---------------------------------------------------------------------------------------------- */

/* dx = scale y (dy - sum(y dy)); y: softmax's result; dx may be y or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_softmax_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* y,
                                                         const kokkosnn_tensor* dy, const kokkosnn_tensor* dx,
                                                         const kokkosnn_softmax_options* options);
/* dx = scale (dy - exp(y) sum(dy)); y: log_softmax's result; dx may be y or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_log_softmax_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* y,
                                                             const kokkosnn_tensor* dy, const kokkosnn_tensor* dx,
                                                             const kokkosnn_softmax_options* options);
/* dx = scale dlse exp(scale x - lse); lse and dlse of one type, the rows' or the accumulator's; dx may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_logsumexp_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                           const kokkosnn_tensor* lse, const kokkosnn_tensor* dlse,
                                                           const kokkosnn_tensor* dx,
                                                           const kokkosnn_softmax_options* options);

/* --- masked_softmax.hpp ----------------------------------------------------------------------------------------- */

/* Softmax of the last axis over the columns that the mask (optional) allows; y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                       const kokkosnn_mask* mask, const kokkosnn_tensor* y,
                                                       const kokkosnn_masked_softmax_options* options);
/* Log-softmax likewise, -inf where the mask does not allow a column; y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_log_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                           const kokkosnn_mask* mask, const kokkosnn_tensor* y,
                                                           const kokkosnn_masked_softmax_options* options);
/* Logarithm of the sum of exponentials of what the mask allows and of the sink; lse has x's extents but the last. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_logsumexp(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                         const kokkosnn_mask* mask, const kokkosnn_tensor* lse,
                                                         const kokkosnn_masked_softmax_options* options);
/* Masked softmax's gradient by x; y: masked_softmax's result. x is read with a softcap only, and otherwise optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_softmax_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                                const kokkosnn_tensor* y, const kokkosnn_tensor* dy,
                                                                const kokkosnn_mask* mask, const kokkosnn_tensor* dx,
                                                                const kokkosnn_masked_softmax_options* options);
/* Masked log-softmax's gradient by x; y: masked_log_softmax's result; otherwise as masked_softmax_backward. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_log_softmax_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                                    const kokkosnn_tensor* y, const kokkosnn_tensor* dy,
                                                                    const kokkosnn_mask* mask,
                                                                    const kokkosnn_tensor* dx,
                                                                    const kokkosnn_masked_softmax_options* options);
/* Masked softmax's gradient by an additive bias; dbias has the rows' type or F32, and extents that broadcast to y's. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_softmax_bias_backward(const kokkosnn_exec* exec,
                                                                     const kokkosnn_tensor* y,
                                                                     const kokkosnn_tensor* dy,
                                                                     const kokkosnn_mask* mask,
                                                                     const kokkosnn_tensor* dbias);
/* Its gradient by the sinks; dsinks has the rows' type or F32, and rank 1. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_masked_softmax_sinks_backward(const kokkosnn_exec* exec,
                                                                      const kokkosnn_tensor* y,
                                                                      const kokkosnn_tensor* dy,
                                                                      const kokkosnn_mask* mask,
                                                                      const kokkosnn_tensor* dsinks);

/* --- cross_entropy.hpp ------------------------------------------------------------------------------------------ */

/* loss = torch.nn.functional.cross_entropy(logits, labels, weights, ...), classes along options.axis.
 * labels: any integers; lse: optional output, a value a row; weights: optional, one a class. loss, lse and weights have
 * the accumulator's type; loss has rank 0, or without a reduction a value a row. predicted: optional output of I32 or
 * I64, the class of each row's greatest logit, as torch.argmax. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_cross_entropy(const kokkosnn_exec* exec, const kokkosnn_tensor* logits,
                                                      const kokkosnn_tensor* labels, const kokkosnn_tensor* loss,
                                                      const kokkosnn_tensor* lse, const kokkosnn_tensor* weights,
                                                      const kokkosnn_tensor* predicted,
                                                      const kokkosnn_cross_entropy_options* options);
/* Its gradient by the logits, for the lse of the forward call; dlogits may be the logits; weights: optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_cross_entropy_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* logits,
                                                               const kokkosnn_tensor* labels,
                                                               const kokkosnn_tensor* lse, const kokkosnn_tensor* dloss,
                                                               const kokkosnn_tensor* dlogits,
                                                               const kokkosnn_tensor* weights,
                                                               const kokkosnn_cross_entropy_options* options);
/* Both in one pass; dlogits may be the logits; lse, weights and predicted: optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_cross_entropy_with_gradient(
    const kokkosnn_exec* exec, const kokkosnn_tensor* logits, const kokkosnn_tensor* labels,
    const kokkosnn_tensor* loss, const kokkosnn_tensor* dlogits, const kokkosnn_tensor* lse,
    const kokkosnn_tensor* weights, const kokkosnn_tensor* predicted, const kokkosnn_cross_entropy_options* options);
/* The loss from rows' log-sum-exps over all classes and the logits of their labels; all of F32 or all of F64. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_cross_entropy_from_lse(const kokkosnn_exec* exec, const kokkosnn_tensor* lse,
                                                               const kokkosnn_tensor* label_logits,
                                                               const kokkosnn_tensor* labels,
                                                               const kokkosnn_tensor* loss,
                                                               const kokkosnn_tensor* weights,
                                                               const kokkosnn_cross_entropy_options* options);

/* loss = torch.nn.functional.cross_entropy(logits, targets, weights, ...) of targets that are probabilities, of the
 * extents and type of logits, along options.axis. lse: optional output, a value a row; weights: optional, one a class,
 * of the rows' type or F32; loss and lse have the accumulator's type. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_soft_cross_entropy(const kokkosnn_exec* exec, const kokkosnn_tensor* logits,
                                                           const kokkosnn_tensor* targets, const kokkosnn_tensor* loss,
                                                           const kokkosnn_tensor* lse, const kokkosnn_tensor* weights,
                                                           const kokkosnn_soft_cross_entropy_options* options);
/* That and its gradient in one pass; dlogits may be the logits or the targets; lse and weights: optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_soft_cross_entropy_with_gradient(
    const kokkosnn_exec* exec, const kokkosnn_tensor* logits, const kokkosnn_tensor* targets,
    const kokkosnn_tensor* loss, const kokkosnn_tensor* dlogits, const kokkosnn_tensor* lse,
    const kokkosnn_tensor* weights, const kokkosnn_soft_cross_entropy_options* options);

/* --- norm.hpp --------------------------------------------------------------------------------------------------- */

/* y = torch.nn.functional.rms_norm(x, [N], weight, epsilon), along any axis; y may be x.
 * weight: optional, one a column, of the rows' type or F32; rstd: optional output of the accumulator's type, a value a
 * row. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_rms_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                 const kokkosnn_tensor* weight, const kokkosnn_tensor* y,
                                                 const kokkosnn_tensor* rstd, const kokkosnn_rms_norm_options* options);
/* y = torch.nn.functional.layer_norm(x, [N], weight, bias, epsilon), along any axis; y may be x.
 * weight, bias: optional, one a column; mean, rstd: optional outputs of the accumulator's type, a value a row. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_layer_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                   const kokkosnn_tensor* weight, const kokkosnn_tensor* bias,
                                                   const kokkosnn_tensor* y, const kokkosnn_tensor* mean,
                                                   const kokkosnn_tensor* rstd,
                                                   const kokkosnn_layer_norm_options* options);
/* rms_norm's gradients by x and, optionally, by the weight; weight: optional; dx may be x or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_rms_norm_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                          const kokkosnn_tensor* weight, const kokkosnn_tensor* rstd,
                                                          const kokkosnn_tensor* dy, const kokkosnn_tensor* dx,
                                                          const kokkosnn_tensor* dweight,
                                                          const kokkosnn_rms_norm_options* options);
/* layer_norm's gradients by x and, optionally, by weight and bias; weight: optional; dx may be x or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_layer_norm_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                            const kokkosnn_tensor* weight, const kokkosnn_tensor* mean,
                                                            const kokkosnn_tensor* rstd, const kokkosnn_tensor* dy,
                                                            const kokkosnn_tensor* dx, const kokkosnn_tensor* dweight,
                                                            const kokkosnn_tensor* dbias,
                                                            const kokkosnn_layer_norm_options* options);

/* --- quantized.hpp: results in 8 bits ---------------------------------------------------------------------------- */

/* y scale = softmax(x): y holds I8 or F8E4M3; scales: output, an F32 a row, of F8E4M3 optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_quantized_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                          const kokkosnn_tensor* y, const kokkosnn_tensor* scales,
                                                          const kokkosnn_softmax_options* options);
/* y scale = rms_norm(x), with y and scales as in quantized_softmax; weight: optional, one a column. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_quantized_rms_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                           const kokkosnn_tensor* weight, const kokkosnn_tensor* y,
                                                           const kokkosnn_tensor* scales,
                                                           const kokkosnn_rms_norm_options* options);
/* y scale = layer_norm(x), with y and scales as in quantized_softmax; weight, bias: optional, one a column. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_quantized_layer_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                             const kokkosnn_tensor* weight, const kokkosnn_tensor* bias,
                                                             const kokkosnn_tensor* y, const kokkosnn_tensor* scales,
                                                             const kokkosnn_layer_norm_options* options);

/* --- add_norm.hpp: norms with a residual ------------------------------------------------------------------------- */

/* sum = x + residual and y = rms_norm(sum), in one pass; sum may be x or residual. weight, rstd: optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_add_rms_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                     const kokkosnn_tensor* residual, const kokkosnn_tensor* weight,
                                                     const kokkosnn_tensor* y, const kokkosnn_tensor* sum,
                                                     const kokkosnn_tensor* rstd,
                                                     const kokkosnn_rms_norm_options* options);
/* sum = x + residual and y = layer_norm(sum), in one pass; sum may be x or residual. weight, bias, mean, rstd:
 * optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_add_layer_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                       const kokkosnn_tensor* residual, const kokkosnn_tensor* weight,
                                                       const kokkosnn_tensor* bias, const kokkosnn_tensor* y,
                                                       const kokkosnn_tensor* sum, const kokkosnn_tensor* mean,
                                                       const kokkosnn_tensor* rstd,
                                                       const kokkosnn_layer_norm_options* options);
/* The gradient by x and by the residual: rms_norm's at sum, and dsum, which reaches sum by other ways. weight, dweight:
 * optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_add_rms_norm_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* sum,
                                                              const kokkosnn_tensor* weight,
                                                              const kokkosnn_tensor* rstd, const kokkosnn_tensor* dy,
                                                              const kokkosnn_tensor* dsum, const kokkosnn_tensor* dx,
                                                              const kokkosnn_tensor* dweight,
                                                              const kokkosnn_rms_norm_options* options);
/* The gradient by x and by the residual: layer_norm's at sum, and dsum. weight, dweight, dbias: optional. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_add_layer_norm_backward(
    const kokkosnn_exec* exec, const kokkosnn_tensor* sum, const kokkosnn_tensor* weight, const kokkosnn_tensor* mean,
    const kokkosnn_tensor* rstd, const kokkosnn_tensor* dy, const kokkosnn_tensor* dsum, const kokkosnn_tensor* dx,
    const kokkosnn_tensor* dweight, const kokkosnn_tensor* dbias, const kokkosnn_layer_norm_options* options);

/* --- column_sums.hpp -------------------------------------------------------------------------------------------- */

/* y_j = sum over all other axes of x: the gradient of a bias. x: rank 1 to 8; y: rank 1, of x's type or the
 * accumulator's. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_column_sums(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                    const kokkosnn_tensor* y,
                                                    const kokkosnn_column_sums_options* options);

/* --- segmented.hpp: row r is values[row_offsets[r]] to values[row_offsets[r + 1] - 1] ---------------------------- */

/* Values of rank 1, or (elements, heads); all values of one type; row_offsets: rows + 1 integers; y may be values.
 * With options.segments row_offsets is instead an index, SegmentIndex: the row of each element, in any order. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* values,
                                                          const kokkosnn_tensor* row_offsets, const kokkosnn_tensor* y,
                                                          const kokkosnn_segmented_options* options);
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_log_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* values,
                                                              const kokkosnn_tensor* row_offsets,
                                                              const kokkosnn_tensor* y,
                                                              const kokkosnn_segmented_options* options);
/* lse: (rows), or (rows, heads) */
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_logsumexp(const kokkosnn_exec* exec, const kokkosnn_tensor* values,
                                                            const kokkosnn_tensor* row_offsets,
                                                            const kokkosnn_tensor* lse,
                                                            const kokkosnn_segmented_options* options);
/* dx may be y or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_softmax_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* y,
                                                                   const kokkosnn_tensor* dy,
                                                                   const kokkosnn_tensor* row_offsets,
                                                                   const kokkosnn_tensor* dx,
                                                                   const kokkosnn_segmented_options* options);
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_log_softmax_backward(
    const kokkosnn_exec* exec, const kokkosnn_tensor* y, const kokkosnn_tensor* dy, const kokkosnn_tensor* row_offsets,
    const kokkosnn_tensor* dx, const kokkosnn_segmented_options* options);

/* segmented_logsumexp's gradient, for its lse; dx may be values. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_segmented_logsumexp_backward(
    const kokkosnn_exec* exec, const kokkosnn_tensor* values, const kokkosnn_tensor* lse, const kokkosnn_tensor* dlse,
    const kokkosnn_tensor* row_offsets, const kokkosnn_tensor* dx, const kokkosnn_segmented_options* options);

/* --- attention.hpp ---------------------------------------------------------------------------------------------- */

/* o = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask, scale=scale, enable_gqa=True).
 * q, k, v, o: rank 4, (batch, head, sequence, dim) or as options.axes says, any strides; q has a multiple of k's heads.
 * mask: optional, of scores (batch, head, query, key); lse: optional output (batch, head, query) of the accumulator's
 * type, the log-sum-exps of the scores. o and lse overlap no input. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_attention(const kokkosnn_exec* exec, const kokkosnn_tensor* q,
                                                  const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                  const kokkosnn_tensor* o, const kokkosnn_mask* mask,
                                                  const kokkosnn_tensor* lse,
                                                  const kokkosnn_attention_options* options);
/* Its gradients by q, k and v, for the o and lse of the forward call and dout, the gradient by o. dq, dk and dv overlap
 * no input. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_attention_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* q,
                                                           const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                           const kokkosnn_tensor* o, const kokkosnn_tensor* dout,
                                                           const kokkosnn_tensor* lse, const kokkosnn_mask* mask,
                                                           const kokkosnn_tensor* dq, const kokkosnn_tensor* dk,
                                                           const kokkosnn_tensor* dv,
                                                           const kokkosnn_attention_options* options);

/* --- attention_mask_gradients.hpp ------------------------------------------------------------------------------- */

/* The gradient of attention by the bias of its mask; dbias has its extents, and q's type or F32. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_attention_bias_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* q,
                                                                const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                                const kokkosnn_tensor* o, const kokkosnn_tensor* dout,
                                                                const kokkosnn_tensor* lse, const kokkosnn_mask* mask,
                                                                const kokkosnn_tensor* dbias,
                                                                const kokkosnn_attention_options* options);
/* The gradient by options.sinks, one a head; dsinks has rank 1, and o's type or F32. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_attention_sinks_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* o,
                                                                 const kokkosnn_tensor* dout,
                                                                 const kokkosnn_tensor* lse,
                                                                 const kokkosnn_tensor* dsinks,
                                                                 const kokkosnn_attention_options* options);

/* --- graph_attention.hpp ---------------------------------------------------------------------------------------- */

/* Attention of nodes to the sources of their edges: torch_geometric's softmax(scale q_i k_j + bias_e, ptr=row_map) and
 * the sum of v_j. q, o: (node, head, dim), k, v: (source, head of k, dim), any strides. row_map, entries: integers of
 * 32 or 64 bits, on the device alone; entries outside of the sources are no edges. bias: optional, (edge, head) of q's
 * type or F32; lse: optional output (node, head) of the accumulator's type. Of the options scale, softcap, sinks and
 * masked_row matter. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_graph_attention(const kokkosnn_exec* exec, const kokkosnn_tensor* q,
                                                        const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                        const kokkosnn_tensor* row_map, const kokkosnn_tensor* entries,
                                                        const kokkosnn_tensor* bias, const kokkosnn_tensor* o,
                                                        const kokkosnn_tensor* lse,
                                                        const kokkosnn_attention_options* options);
/* Its gradients; dbias is optional, of q's type or F32. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_graph_attention_backward(
    const kokkosnn_exec* exec, const kokkosnn_tensor* q, const kokkosnn_tensor* k, const kokkosnn_tensor* v,
    const kokkosnn_tensor* row_map, const kokkosnn_tensor* entries, const kokkosnn_tensor* bias,
    const kokkosnn_tensor* o, const kokkosnn_tensor* dout, const kokkosnn_tensor* lse, const kokkosnn_tensor* dq,
    const kokkosnn_tensor* dk, const kokkosnn_tensor* dv, const kokkosnn_tensor* dbias,
    const kokkosnn_attention_options* options);

/* --- merge_attention.hpp ---------------------------------------------------------------------------------------- */

/* Joins results of attention over disjoint keys: o = sum_p exp(lse_p - lse) o_p, lse = logsumexp_p lse_p. o: rank 4,
 * (batch, head, sequence, dim) or as options.axes says, or rank 3, (token, head, dim). o_parts: (part, ...) of o's type
 * or of the accumulator's, lse_parts: (part, batch, head, query) or (part, token, head) of the accumulator's type; lse,
 * which is optional, too. Of the options axes, masked_row and sinks matter. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_merge_attention(const kokkosnn_exec* exec, const kokkosnn_tensor* o_parts,
                                                        const kokkosnn_tensor* lse_parts, const kokkosnn_tensor* o,
                                                        const kokkosnn_tensor* lse,
                                                        const kokkosnn_attention_options* options);

/* --- packed_attention.hpp --------------------------------------------------------------------------------------- */

/* Attention within each of a batch of sequences, one behind the other: q, k, v, o: rank 3, (token, head, dim), any
 * strides. query_offsets, key_offsets: I32 or I64, one more than there are sequences: each one's first token, and the
 * end of the last one; read on the device alone. mask: numbers of queries and keys are those within their sequence; no
 * booleans or bias of keys. lse: optional output (token, head). options.axes does not matter. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_packed_attention(const kokkosnn_exec* exec, const kokkosnn_tensor* q,
                                                         const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                         const kokkosnn_tensor* query_offsets,
                                                         const kokkosnn_tensor* key_offsets, const kokkosnn_tensor* o,
                                                         const kokkosnn_mask* mask, const kokkosnn_tensor* lse,
                                                         const kokkosnn_attention_options* options);
KOKKOSNN_C_API kokkosnn_status kokkosnn_packed_attention_backward(
    const kokkosnn_exec* exec, const kokkosnn_tensor* q, const kokkosnn_tensor* k, const kokkosnn_tensor* v,
    const kokkosnn_tensor* query_offsets, const kokkosnn_tensor* key_offsets, const kokkosnn_tensor* o,
    const kokkosnn_tensor* dout, const kokkosnn_tensor* lse, const kokkosnn_mask* mask, const kokkosnn_tensor* dq,
    const kokkosnn_tensor* dk, const kokkosnn_tensor* dv, const kokkosnn_attention_options* options);

/* --- matmul.hpp ------------------------------------------------------------------------------------------------- */

/* c = alpha torch.matmul(a, b) + beta c, of one type: a (.., m, k), b (.., k, n), c (.., m, n). Any strides, so a
 * transposed matrix is one with exchanged strides; axes before the last two broadcast to c's. c overlaps neither. With
 * options.rows or options.row_offsets all matrices have rank 2. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_matmul(const kokkosnn_exec* exec, const kokkosnn_tensor* a,
                                               const kokkosnn_tensor* b, const kokkosnn_tensor* c,
                                               const kokkosnn_matmul_options* options);
/* Its gradients: da = alpha dc b^T + beta da, db = alpha a^T dc + beta db, summed over the batches that a or b is
 * broadcast along; da, db: optional. dc is of c's extents; da and db overlap neither each other nor an input.
 * options.rows and options.row_offsets must be NULL. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_matmul_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* dc,
                                                        const kokkosnn_tensor* a, const kokkosnn_tensor* b,
                                                        const kokkosnn_tensor* da, const kokkosnn_tensor* db,
                                                        const kokkosnn_matmul_options* options);

/* --- rope.hpp --------------------------------------------------------------------------------------------------- */

/* y = x with pairs of each row rotated by the angles of its position; y may be x.
 * x: rank 2 to 4, (batch, sequence, head, dim) or as options.sequence_axis says. cos, sin: optional, both or neither:
 * tables (positions, rotary_dims / 2) of the accumulator's type; without them angles are computed from options.theta.
 * positions: optional, (sequence) or (batch, sequence) of I32 or I64; without them a row's position is its index. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_rope(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                             const kokkosnn_tensor* cos, const kokkosnn_tensor* sin,
                                             const kokkosnn_tensor* y, const kokkosnn_tensor* positions,
                                             const kokkosnn_rope_options* options);
/* Its gradient: dy rotated back; all other arguments as in the forward call; dx may be dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_rope_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* dy,
                                                      const kokkosnn_tensor* cos, const kokkosnn_tensor* sin,
                                                      const kokkosnn_tensor* dx, const kokkosnn_tensor* positions,
                                                      const kokkosnn_rope_options* options);

/* --- rms_norm_rope.hpp ------------------------------------------------------------------------------------------ */

/* y = rope(rms_norm(x)), each head's rows normalised and then rotated, in one pass; y may be x.
 * weight: optional, (dim) or (head, dim), of x's type or F32; all other arguments as rope's. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_rms_norm_rope(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                      const kokkosnn_tensor* weight, const kokkosnn_tensor* cos,
                                                      const kokkosnn_tensor* sin, const kokkosnn_tensor* y,
                                                      const kokkosnn_tensor* positions,
                                                      const kokkosnn_rms_norm_rope_options* options);

/* --- elementwise.hpp: inputs broadcast to the outputs; all tensors of a call hold one type, but for cast's ------- */

/* y = a + b; y may be a or b. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_add(const kokkosnn_exec* exec, const kokkosnn_tensor* a,
                                            const kokkosnn_tensor* b, const kokkosnn_tensor* y);
/* y = a b; y may be a or b. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_mul(const kokkosnn_exec* exec, const kokkosnn_tensor* a,
                                            const kokkosnn_tensor* b, const kokkosnn_tensor* y);
/* y = x in y's type. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_cast(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                             const kokkosnn_tensor* y);
/* y = torch.nn.functional.silu(x); y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_silu(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                             const kokkosnn_tensor* y);
/* Its gradient; dx may be x or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_silu_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                      const kokkosnn_tensor* dy, const kokkosnn_tensor* dx);
/* y = torch.nn.functional.gelu(x), or its tanh form; y may be x. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_gelu(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                             const kokkosnn_tensor* y, const kokkosnn_gelu_options* options);
/* Its gradient; dx may be x or dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_gelu_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                                      const kokkosnn_tensor* dy, const kokkosnn_tensor* dx,
                                                      const kokkosnn_gelu_options* options);
/* y = silu(gate) up; y may be gate or up. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_swiglu(const kokkosnn_exec* exec, const kokkosnn_tensor* gate,
                                               const kokkosnn_tensor* up, const kokkosnn_tensor* y);
/* Its gradients; dgate and dup may be two of gate, up and dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_swiglu_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* gate,
                                                        const kokkosnn_tensor* up, const kokkosnn_tensor* dy,
                                                        const kokkosnn_tensor* dgate, const kokkosnn_tensor* dup);
/* y = gelu(gate) up, or by the tanh form; y may be gate or up. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_geglu(const kokkosnn_exec* exec, const kokkosnn_tensor* gate,
                                              const kokkosnn_tensor* up, const kokkosnn_tensor* y,
                                              const kokkosnn_gelu_options* options);
/* Its gradients; dgate and dup may be two of gate, up and dy. */
KOKKOSNN_C_API kokkosnn_status kokkosnn_geglu_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* gate,
                                                       const kokkosnn_tensor* up, const kokkosnn_tensor* dy,
                                                       const kokkosnn_tensor* dgate, const kokkosnn_tensor* dup,
                                                       const kokkosnn_gelu_options* options);

#ifdef __cplusplus
}
#endif

#endif /* KOKKOSNN_KOKKOSNN_H */
