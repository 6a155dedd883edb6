// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_MASKED_HPP
#define KOKKOSNN_IMPL_HOST_MASKED_HPP

#include <KokkosNN/impl/gpu/device/row_part.hpp>
#include <KokkosNN/impl/host/masked_vectors.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>
#include <KokkosNN/impl/math/gates.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <iterator>
#include <type_traits>

// Masked rows in HostRows. Its loops run over the columns that a mask allows as over a whole row, so that no element is
// read that is ruled out by its column. The half of a mask that looks at single elements changes vectors as they are
// loaded (`MaskedVectors`).

namespace KokkosNN::Impl {

/// tanh of a host's vectors to a few ulps: near 0 by its power series, else by an exponential.
template <class A>
struct HostTanh {
  using T                       = Vector<A>;
  static constexpr A near       = A(0.25);
  static constexpr int terms    = sizeof(A) == 8 ? 10 : 5;
  static constexpr double all[] = {-1.0 / 3,
                                   2.0 / 15,
                                   -17.0 / 315,
                                   62.0 / 2835,
                                   -1382.0 / 155925,
                                   21844.0 / 6081075,
                                   -929569.0 / 638512875,
                                   6404582.0 / 10854718875,
                                   -443861162.0 / 1856156927625,
                                   18888466084.0 / 194896477400625};
  static_assert(terms <= int(std::size(all)));

  DecayingExp<A, ExpAccuracy::full> decay{2.0};

  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x) const {
    const T one = splat<T>(A(1)), h = magnitude(x), e = decay(h);
    const T far    = (one - e) * inverse_of_normal(one + e);
    const T square = h * h;
    T sum          = splat<T>(A(all[terms - 1]));
    for (int k = terms - 2; k >= 0; --k) sum = multiply_add(sum, square, splat<T>(A(all[k])));
    const T result = h < splat<T>(near) ? multiply_add(h * square, sum, h) : far;
    return x < T{} ? -result : result;
  }
};

/// Parts of a mask that loops are compiled for: a bias alone or a boolean mask alone, of neighbours in memory, or any.
enum class MaskParts { bias, keep, any };

/// Makes logits of vectors of x, as a mask's Columns make them of packs; B is the bias' type. All is copied: compilers
/// would read it again after every store.
template <class A, MaskParts parts, class B>
struct MaskedVectors {
  using T                    = Vector<A>;
  static constexpr int lanes = simd_width<A>;

  A factor;
  const B* bias;
  std::int64_t bias_stride;
  const std::uint8_t* keep;
  std::int64_t keep_stride;
  A softcap;
  A slope;
  A distance;
  HostTanh<A> tanh{};

  template <class Columns>
  KOKKOS_FORCEINLINE_FUNCTION MaskedVectors(const Columns& columns, const B* bias_row, A sign)
      : factor(columns.all.folds_scale ? columns.factor : sign),
        bias(bias_row),
        bias_stride(columns.all.bias_stride),
        keep(columns.keep),
        keep_stride(columns.all.keep_stride),
        softcap(columns.all.softcap),
        slope(columns.slope),
        distance(columns.distance) {}

  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x, int i, int n) const {
    T z = x;
    if constexpr (parts == MaskParts::bias) {
      z = multiply_add(x, splat<T>(factor), load_strided<A>(bias + i, 1, n));
    } else if constexpr (parts == MaskParts::keep) {
      z = where_kept(x * splat<T>(factor), n == lanes ? load_bytes<A>(keep + i) : load_bytes_up_to<A>(keep + i, 1, n));
    } else {
      z = any_logit(x, i, n);
    }
    return n == lanes ? z : first_lanes(z, n, infinity());
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static T infinity() { return splat<T>(-Kokkos::Experimental::infinity_v<A>); }
  KOKKOS_FORCEINLINE_FUNCTION static T where_kept(const T& z, const BitsOf<T>& kept) {
    return kept != BitsOf<T>{} ? z : infinity();
  }

  KOKKOS_FORCEINLINE_FUNCTION T any_logit(const T& x, int i, int n) const {
    const bool caps = softcap != A(0);
    T z             = caps ? splat<T>(softcap) * tanh(x * splat<T>(factor)) : x;
    const A own     = caps ? A(1) : factor;
    z = bias != nullptr ? multiply_add(z, splat<T>(own), load_strided<A>(bias + i * bias_stride, bias_stride, n))
                        : z * splat<T>(own);
    if (slope != A(0)) z -= splat<T>(slope) * magnitude(splat<T>(distance + static_cast<A>(i)) + lane_numbers<T>());
    return keep != nullptr ? where_kept(z, load_bytes_up_to<A>(keep + i * keep_stride, keep_stride, n)) : z;
  }
};

/// Masked row, as a host's loops read it.
template <class Masked>
struct HostMaskedRow : Masked {
  static constexpr bool makes_logits = !std::is_same_v<decltype(Masked::elements), NoElementMask::Row>;

  decltype(Masked::x.base) base;
  std::int64_t stride;

  explicit HostMaskedRow(const Masked& row) : Masked(row), base(row.x.base), stride(row.x.stride) {}

  template <int V>
  KOKKOS_FORCEINLINE_FUNCTION ColumnRange packs(std::int64_t) const {
    return this->allowed;
  }

  /// Calls f(logit), see MakesLogits.
  template <class Params, class F>
  KOKKOS_FORCEINLINE_FUNCTION void with_logits(const Params& params, std::int64_t begin, const F& f) const
    requires(makes_logits)
  {
    using A             = typename Params::accumulator;
    const auto columns  = this->elements.from(begin);
    const auto& mask    = columns.all;
    const bool is_any   = mask.softcap != A(0) || mask.slopes.exists();
    const bool has_keep = columns.keep != nullptr, has_bias = columns.bias.exists();
    if (!is_any && has_keep && !has_bias && mask.keep_stride == 1) {
      return f(MaskedVectors<A, MaskParts::keep, A>(columns, nullptr, params.sign));
    }
    columns.bias.visit([&](const auto* bias) {
      using B = std::remove_cvref_t<decltype(*bias)>;
      if (!is_any && !has_keep && has_bias && mask.bias_stride == 1) {
        f(MaskedVectors<A, MaskParts::bias, B>(columns, bias, params.sign));
      } else {
        f(MaskedVectors<A, MaskParts::any, B>(columns, bias, params.sign));
      }
    });
  }
};

/// Rows of x under a mask, as a host's loops read them.
template <class Source>
struct HostMaskedRows {
  static constexpr RowForm form     = Source::form;
  static constexpr bool looks_ahead = false;

  Source source;

  KOKKOS_FORCEINLINE_FUNCTION auto row(std::int64_t r) const {
    return HostMaskedRow<decltype(source.row(r))>(source.row(r));
  }
  /// Row of x without its mask.
  KOKKOS_FORCEINLINE_FUNCTION auto memory_row(std::int64_t r) const { return source.x.row(r); }
  bool has_sinks() const { return source.sinks.logits.exists(); }
};

template <class T, RowForm form, class A, class Elements>
struct HostSource<MaskedRows<T, form, A, Elements>> {
  using type = HostMaskedRows<MaskedRows<T, form, A, Elements>>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_MASKED_HPP
