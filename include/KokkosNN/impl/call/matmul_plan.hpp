// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MATMUL_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_MATMUL_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/impl/matmul_shapes.hpp>
#include <KokkosNN/matmul_options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

// A matrix product on the host: its tensors as batches of matrices, and its plan.

namespace KokkosNN::Impl {

/// Batches whose products are added: axes of a and b that c lacks, and that are none with the inner axis.
struct MatmulSums {
  int n                                  = 0;
  std::int64_t extent[max_row_dims]      = {};
  std::int64_t stride_of_a[max_row_dims] = {};
  std::int64_t stride_of_b[max_row_dims] = {};

  std::int64_t count() const {
    std::int64_t product = 1;
    for (int k = 0; k < n; ++k) product *= extent[k];
    return product;
  }
};

/// Numbers of the tensors of a product; an epilogue's inputs follow.
struct MatmulTensors {
  enum Number { c, a, b, inputs };
};

struct MatmulOperands {
  const char* function;
  int count;
  Tensor tensor[max_matmul_tensors];
  const char* name[max_matmul_tensors];
  Tensor rows        = {};  ///< index of a's rows, if there is one
  Tensor row_offsets = {};  ///< of c's rows, if these are sums
  MatmulSums sums    = {};
};

/// Batches of matrices: c and inputs of rows x cols, a of rows x inner, b of inner x cols, each by the strides of its
/// rows and columns. Where c is dense along its rows, the product is turned round: a is b transposed, and b a.
struct MatmulLayout {
  std::int64_t batches                                  = 1;
  std::int64_t rows                                     = 0;
  std::int64_t cols                                     = 0;
  std::int64_t inner                                    = 0;
  const void* data[max_matmul_tensors]                  = {};
  std::int64_t row_stride[max_matmul_tensors]           = {};
  std::int64_t col_stride[max_matmul_tensors]           = {};
  int n                                                 = 0;  ///< axes of the batches
  std::int64_t extent[max_row_dims]                     = {};
  std::int64_t stride[max_matmul_tensors][max_row_dims] = {};
  MatmulRows kind                                       = MatmulRows::own;
  MatmulRowMaps maps;  ///< c has rows of its own then, `maps.sums`, and is not turned

  MatmulSums sums;

  bool writes() const { return batches > 0 && cols > 0 && (kind == MatmulRows::summed ? maps.sums : rows) > 0; }
  RowMap map(int tensor) const { return row_map(extent, stride[tensor], n); }
};

/// Checks a call and describes it. Without maps of rows, batches that b and its columns do not depend on are rows.
/// Throws std::invalid_argument for extents that do not fit or do not broadcast, and for overlap with c, but for inputs
/// that are c.
KOKKOSNN_EXPORT MatmulLayout normalise(const MatmulOperands& operands);

/// The product that is the gradient of c = a b with respect to a or b, which `number` names: out = dc b^T or a^T dc.
/// The c of `product` is dc, `out` the gradient. Batches that the operand is broadcast along become a part of the sum's
/// axis where strides let these be one axis, and sums of products otherwise. Throws std::invalid_argument for extents
/// that do not fit.
KOKKOSNN_EXPORT MatmulOperands gradient_product(const MatmulOperands& product, const Tensor& out, int number);

/// Throws std::invalid_argument if da, which is written first, overlaps a or db.
KOKKOSNN_EXPORT void require_apart_gradients(const MatmulOperands& product, const Tensor& da, const Tensor& db);

/// Plan of a call. A team, on a host a thread, takes tiles of c in turn.
struct MatmulPlan {
  std::string label;
  bool is_on_warpgroups    = false;  ///< Hopper's; the operands' forms are then the two below, any of the four
  bool a_across            = false;
  bool b_along             = false;
  MatmulForm form          = MatmulForm::a_along_b_across;
  bool copies_a            = false;  ///< a's tiles come by asynchronous copies of 16 bytes, else element by element
  bool copies_b            = false;
  std::int64_t rows        = 0;  ///< of a tile
  std::int64_t cols        = 0;
  std::int64_t row_blocks  = 0;
  std::int64_t col_blocks  = 0;
  int group                = 1;  ///< rows of tiles that are taken column by column, so that they share b in a cache
  int team_size            = 1;
  std::int64_t league_size = 1;
  std::int64_t parts       = 1;  ///< of the sum, over batches and the inner axis, that a workspace has at a time
  std::int64_t inner_parts = 1;  ///< of the inner axis
  std::int64_t part_inner  = 0;  ///< products of a part; the last one's may be fewer
  std::int64_t rounds      = 1;  ///< in which a GPU adds up batches; the total so far is a matrix ahead of the parts
  std::size_t workspace    = 0;  ///< bytes
  std::string sum_label;         ///< of the kernel that adds the parts
  std::int64_t sum_league_size = 1;
  std::int64_t sums_per_team   = 1;  ///< rows of c, where these are sums, that a team has at a time
  int scratch_level            = 0;
  std::size_t scratch          = 0;  ///< bytes a team
};

/// Matrices of the workspace that a batch has.
inline std::int64_t matmul_workspace_matrices(const MatmulPlan& plan) { return plan.parts + (plan.rounds > 1 ? 1 : 0); }

/// True if a GPU's kernel for few rows serves a product of such elements better than that of large tiles; it splits no
/// sums.
KOKKOSNN_EXPORT bool has_few_rows(ElementType type, const MatmulLayout& layout, const MatmulOptions& options);

/// True for products for which cuBLAS is not taken by default, as that kernel is faster.
KOKKOSNN_EXPORT bool is_faster_than_cublas(ElementType type, const MatmulLayout& layout, const MatmulOptions& options);

/// Chooses the plan: no launch, no allocation on a device. `shape` is a GPU's kernel.
KOKKOSNN_EXPORT MatmulPlan make_matmul_plan(const char* function, ElementType type, const MatmulOptions& options,
                                            const MatmulLayout& layout, const MatmulKernelShape& shape,
                                            const DeviceTraits& traits);

/// The products of a round of a GPU's plan with parts, of elements of some bytes: a batch a part, whose c are matrices
/// one after the other, without memory.
KOKKOSNN_EXPORT MatmulLayout layout_of_parts(const MatmulLayout& layout, const MatmulPlan& plan, std::int64_t round,
                                             int element_bytes);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_PLAN_HPP
