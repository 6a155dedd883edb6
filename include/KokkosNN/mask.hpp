// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_MASK_HPP
#define KOKKOSNN_MASK_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

// Which columns of a row take part in a masked softmax, and what is added to their logits.
//
// The axes of x are named after attention: the last is the keys (the columns), the one before it the queries, the third
// from the end the heads, the first of four the batch. A View inside a mask broadcasts over x's axes as in NumPy: its
// last axis lines up with x's (RowLengths: with the queries), axes that it lacks in front are broadcast, and so is one
// of extent 1 or of stride 0.

namespace KokkosNN {

/// Columns k take part where view(..., q, k) is true.
template <Concepts::View V>
struct BooleanMask {
  V view;  ///< of bool, or of integers of one byte; any strides
};
template <Concepts::View V>
BooleanMask(const V&) -> BooleanMask<V>;

/// view(..., q, k) is added to the logit, behind scale and softcap. A -inf leaves a column no weight, but unlike what
/// BooleanMask rules out it is looked at: a NaN or +inf in its x makes the row NaN, as does one in its dy.
template <Concepts::View V>
struct AdditiveBias {
  V view;  ///< of x's type or of float; any strides
};
template <Concepts::View V>
AdditiveBias(const V&) -> AdditiveBias<V>;

/// Columns k <= q + offset take part. With offset 0 query 0 sees key 0 alone, as torch.tril has it; with
/// offset = keys - queries the last query sees the last key.
struct CausalMask {
  std::int64_t offset = 0;
};

/// Columns from q + offset - left to q + offset + right take part.
struct SlidingWindow {
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  std::int64_t left   = unbounded;  ///< columns in front of the diagonal, not negative
  std::int64_t right  = unbounded;  ///< columns behind it, not negative
  std::int64_t offset = 0;          ///< as CausalMask's
};

/// Columns k < length take part; a length below 0 counts as 0, one beyond the columns as all of them.
template <Concepts::View V>
struct RowLengths {
  V view;  ///< of signed 32-bit or 64-bit integers; one axis less than x: a length a row; or rank 1: a length for each
           ///< index of x's first axis
};
template <Concepts::View V>
RowLengths(const V&) -> RowLengths<V>;

/// A number of columns for each index of x's first axis that is added to the offsets of CausalMask, SlidingWindow and
/// Alibi, which it is joined with: sequences of a batch whose queries begin at different keys, as those of a KV cache.
template <Concepts::View V>
struct DiagonalOffsets {
  V view;  ///< of signed 32-bit or 64-bit integers; shapes as RowLengths'; numbers beyond +-2^59 count as these
};
template <Concepts::View V>
DiagonalOffsets(const V&) -> DiagonalOffsets<V>;

/// -slopes(h) |k - (q + offset)| is added to the logit of head h: attention with linear biases (Press, Smith and Lewis,
/// "Train short, test long", 2022).
template <Concepts::View V>
struct Alibi {
  V slopes;                 ///< rank 1: a slope a head, of x's type or of float
  std::int64_t offset = 0;  ///< as CausalMask's
};
template <Concepts::View V>
Alibi(const V&) -> Alibi<V>;
template <Concepts::View V>
Alibi(const V&, std::int64_t) -> Alibi<V>;

/// view(..., q) is a further factor of the row's logits, beside the options' scale and under a softcap: temperatures of
/// rows. It is read on the device and not checked: 0 makes the row uniform but for infinite x, a negative one reverses
/// its order, and NaN makes it NaN. Attention does not take it.
template <Concepts::View V>
struct RowScales {
  V view;  ///< of x's type or of float; shapes as RowLengths'
};
template <Concepts::View V>
RowScales(const V&) -> RowScales<V>;

/// Several masks at once, at most one of each kind: what takes part in all of them, with all that they add.
template <class... Parts>
struct Masks {
  std::tuple<Parts...> parts;
};

namespace Impl {

template <class M, template <class> class Kind>
inline constexpr bool is_mask_of = false;
template <class V, template <class> class Kind>
inline constexpr bool is_mask_of<Kind<V>, Kind> = true;

template <class M>
inline constexpr bool is_single_mask =
    is_mask_of<M, BooleanMask> || is_mask_of<M, AdditiveBias> || is_mask_of<M, RowLengths> || is_mask_of<M, Alibi> ||
    is_mask_of<M, DiagonalOffsets> || is_mask_of<M, RowScales> || std::is_same_v<M, CausalMask> ||
    std::is_same_v<M, SlidingWindow>;

template <class M>
inline constexpr bool is_mask = is_single_mask<M>;
template <class... Parts>
inline constexpr bool is_mask<Masks<Parts...>> = (is_single_mask<Parts> && ...);

}  // namespace Impl

namespace Concepts {

/// A mask of one of the kinds above, or several joined.
template <class M>
concept Mask = Impl::is_mask<M>;

}  // namespace Concepts

/// Joins masks: `masks(CausalMask{}, AdditiveBias{bias})`; `masks()` masks nothing.
template <class... Parts>
  requires(Impl::is_single_mask<Parts> && ...)
Masks<Parts...> masks(const Parts&... parts) {
  return {{parts...}};
}

/// One logit a head that joins the sum of each of the head's rows without a column of its own: the View `logits` (rank
/// 1, of x's type or of float), erased. It takes what it is given as it is: no scale, no softcap. Zeros make the
/// softmax "off by one". The View's memory must live as long as the call.
class Sinks {
 public:
  Sinks() = default;

  template <Concepts::View V>
  Sinks(const V& logits)  // NOLINT: so that {.sinks = view} reads well
      : m_data(logits.data()),
        m_type(Impl::element_type<typename V::value_type>()),
        m_element_bytes(sizeof(typename V::value_type)),
        m_extent(static_cast<std::int64_t>(logits.extent(0))),
        m_stride(static_cast<std::int64_t>(logits.stride(0))),
        m_on_host(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename V::memory_space>::accessible),
        m_on_device(Kokkos::SpaceAccessibility<Kokkos::DefaultExecutionSpace, typename V::memory_space>::accessible) {
    static_assert(V::rank() == 1, "KokkosNN::Sinks: logits must have rank 1, a logit a head");
    static_assert(Concepts::Element<typename V::non_const_value_type>,
                  "KokkosNN::Sinks: logits must hold double, float, half_t or bhalf_t");
  }

  bool exist() const { return m_type != ElementType::other; }
  const void* data() const { return m_data; }
  ElementType type() const { return m_type; }
  int element_bytes() const { return m_element_bytes; }
  std::int64_t extent() const { return m_extent; }
  std::int64_t stride() const { return m_stride; }

  /// True if kernels of the execution space can read them.
  template <Concepts::ExecutionSpace Exec>
  bool accessible_from() const {
    constexpr bool is_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible;
    return is_host ? m_on_host : m_on_device;
  }

 private:
  const void* m_data    = nullptr;
  ElementType m_type    = ElementType::other;
  int m_element_bytes   = 0;
  std::int64_t m_extent = 0;
  std::int64_t m_stride = 0;
  bool m_on_host        = false;
  bool m_on_device      = false;
};

/// Options of a masked softmax; an aggregate for designated initialisers: `{.scale = 0.125, .softcap = 30}`.
struct MaskedSoftmaxOptions {
  double scale               = 1.0;                   ///< factor of x; 2^-100 to 2^100, or negative
  double softcap             = 0;                     ///< c > 0 replaces scale x by c tanh(scale x / c); 0: none
  Sinks sinks                = {};                    ///< one logit a head that joins the sum
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;  ///< of a row of which no column takes part, and without a sink
  Determinism determinism    = Determinism::run_to_run;
  PlanRequest plan           = {};  ///< forces parts of the plan, for experiments and tuning
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_MASK_HPP
