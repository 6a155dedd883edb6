// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_MASKED_PAIRS_HPP
#define KOKKOSNN_IMPL_HOST_MASKED_PAIRS_HPP

#include <KokkosNN/impl/gpu/device/row_part.hpp>
#include <KokkosNN/impl/host/masked_vectors.hpp>
#include <KokkosNN/impl/host/pairs.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/masked_pairs.hpp>
#include <KokkosNN/impl/math/gates.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Masked rows of y and dy in HostRows: loops over the columns that a mask allows, as masked.hpp has them of x. A
// boolean mask, softcap or scales of rows change vectors of pairs, or of results.

namespace KokkosNN::Impl {

/// Change of pairs under a boolean mask of neighbours in memory, or, if `is_any`, under any mask. All is copied, as in
/// MaskedVectors.
template <class A, bool is_any, bool has_logarithms, class X>
struct MaskedPairVectors {
  using T                       = Vector<A>;
  static constexpr bool changes = true;

  const std::uint8_t* keep;
  std::int64_t keep_stride;
  const X* x;
  std::int64_t x_stride;
  A inner_scale;  ///< of x
  A scale;
  DecayingExp<A, ExpAccuracy::full> decay{2.0};

  template <class ElementsRow>
  KOKKOS_FORCEINLINE_FUNCTION MaskedPairVectors(const ElementsRow& row, std::int64_t begin)
      : keep(row.keep != nullptr ? row.keep + begin * row.all.keep_stride : nullptr),
        keep_stride(row.all.keep_stride),
        x(row.x != nullptr ? row.x + begin * row.all.x_stride : nullptr),
        x_stride(row.all.x_stride),
        inner_scale(row.all.inner_scale * row.scale),
        scale(row.scale) {}

  /// Makes masked elements 0, or -inf in logarithms.
  KOKKOS_FORCEINLINE_FUNCTION void apply(T& y, T& dy, int i, int n) const {
    constexpr A masked = has_logarithms ? -Kokkos::Experimental::infinity_v<A> : A(0);
    y                  = where_kept(y, masked, i, n);
    dy                 = where_kept(dy, A(0), i, n);
  }

  /// Gradient by x, made of that by the logits.
  KOKKOS_FORCEINLINE_FUNCTION T chained(const T& dx, int i, int n) const {
    if constexpr (!is_any) return dx;
    T slope = splat<T>(scale);
    if (x != nullptr) {
      const T e = decay(magnitude(load_strided<A>(x + i * x_stride, x_stride, n) * splat<T>(inner_scale)));
      const T d = splat<T>(A(1)) + e;
      slope *= splat<T>(A(4)) * e * inverse_of_normal(d * d);
    }
    return dx * where_kept(slope, A(1), i, n);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION T where_kept(const T& value, A masked, int i, int n) const {
    if constexpr (is_any) {
      if (keep == nullptr) return value;
      return load_bytes_up_to<A>(keep + i * keep_stride, keep_stride, n) != BitsOf<T>{} ? value : splat<T>(masked);
    } else {
      return load_bytes_up_to<A>(keep + i, 1, n) != BitsOf<T>{} ? value : splat<T>(masked);
    }
  }
};

/// Masked row of y and dy, as a host's loops read it.
template <class Masked, class X, bool has_logarithms>
struct HostMaskedPairRow : Masked {
  static constexpr bool changes_pairs = !std::is_same_v<decltype(Masked::elements), NoGradientElements::Row>;

  explicit HostMaskedPairRow(const Masked& row) : Masked(row) {}

  template <int V>
  KOKKOS_FORCEINLINE_FUNCTION ColumnRange packs(std::int64_t) const {
    return this->allowed;
  }

  /// Calls f(change), see ChangesPairs.
  template <class Params, class F>
  KOKKOS_FORCEINLINE_FUNCTION void with_pairs(const Params&, std::int64_t begin, const F& f) const
    requires(changes_pairs)
  {
    using A           = typename Params::accumulator;
    const auto& row   = this->elements;
    const bool is_any = row.keep == nullptr || row.all.keep_stride != 1 || row.bends();
    if (is_any) {
      f(MaskedPairVectors<A, true, has_logarithms, X>(row, begin));
    } else {
      f(MaskedPairVectors<A, false, has_logarithms, X>(row, begin));
    }
  }
};

/// Rows of y and dy under a mask, as a host's loops read them.
template <class Source, class X, bool has_logarithms>
struct HostMaskedPairRows {
  static constexpr RowForm form     = Source::form;
  static constexpr bool looks_ahead = false;

  Source source;

  KOKKOS_FORCEINLINE_FUNCTION auto row(std::int64_t r) const {
    return HostMaskedPairRow<decltype(source.row(r)), X, has_logarithms>(source.row(r));
  }
};

template <class YRows, class DyRows, class Elements, bool has_logarithms>
struct HostSource<MaskedPairRows<YRows, DyRows, Elements, has_logarithms>> {
  using type = HostMaskedPairRows<MaskedPairRows<YRows, DyRows, Elements, has_logarithms>, typename YRows::value_type,
                                  has_logarithms>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_MASKED_PAIRS_HPP
