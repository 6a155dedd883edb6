// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MATMUL_OPTIONS_HPP
#define KOKKOSNN_MATMUL_OPTIONS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/precision.hpp>

namespace KokkosNN {

/// Parts of a GPU's plan of a matrix product that a caller fixes, for experiments; 0 leaves the choice to the planner.
struct MatmulTuning {
  int group = 0;  ///< rows of tiles that are taken column by column, so that they share b in a cache; 1: row by row
  int parts = 0;  ///< parts of the summed axis, whose sums teams take apart; 1: it is not split
  MatmulTier tier = MatmulTier::automatic;
};

/// Who computes a matrix product.
enum class MatmulProvider {
  automatic,  ///< cuBLAS or rocBLAS for what it has, where built with it (KokkosNN_ENABLE_BLAS), else own
  own,        ///< this library's kernels
  vendor  ///< cuBLAS, rocBLAS, on hosts BLAS; an error where it has no such product, or this library was built without
};

/// Options of a matrix product; an aggregate for designated initialisers: `{.alpha = 0.5, .beta = 1}`.
struct MatmulOptions {
  double alpha            = 1;                        ///< factor of the product; 0: a and b are not read
  double beta             = 0;                        ///< factor of c; 0: c is not read, whatever it holds
  Precision precision     = Precision::exact;         ///< of products of float; hosts and GPUs without TF32 are exact
  Determinism determinism = Determinism::run_to_run;  ///< batch_invariant: an element's bits depend on its terms alone
  MatmulProvider provider = MatmulProvider::automatic;
  MatmulTuning tuning     = {};
};

/// Rows of a matrix by an index, in place of `matmul`'s a: row i of the product is of the row rows(i) of a.
template <Concepts::View AView, Concepts::View RowsView>
struct GatheredRows {
  AView a;        ///< matrix of any number of rows
  RowsView rows;  ///< integers of any type: a row of a for each row of the product
};
template <class AView, class RowsView>
GatheredRows(const AView&, const RowsView&) -> GatheredRows<AView, RowsView>;

/// Sums of rows, in place of `matmul`'s c: row r of c is the sum of the product's rows row_offsets(r) to
/// row_offsets(r + 1) - 1.
template <Concepts::View CView, Concepts::View OffsetsView>
struct SummedRows {
  CView c;                  ///< output
  OffsetsView row_offsets;  ///< integers of any type, one more than c has rows, ascending
};
template <class CView, class OffsetsView>
SummedRows(const CView&, const OffsetsView&) -> SummedRows<CView, OffsetsView>;

namespace Impl {

template <class T>
inline constexpr bool are_gathered_rows = false;
template <class A, class R>
inline constexpr bool are_gathered_rows<GatheredRows<A, R>> = true;
template <class T>
inline constexpr bool are_summed_rows = false;
template <class C, class R>
inline constexpr bool are_summed_rows<SummedRows<C, R>> = true;

}  // namespace Impl

namespace Concepts {

/// The a of a matrix product: a View, or GatheredRows.
template <class T>
concept MatmulA = View<T> || Impl::are_gathered_rows<T>;
/// The c of a matrix product: a View, or SummedRows.
template <class T>
concept MatmulC = View<T> || Impl::are_summed_rows<T>;

}  // namespace Concepts

}  // namespace KokkosNN

#endif  // KOKKOSNN_MATMUL_OPTIONS_HPP
