// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_MASKED_HPP
#define KOKKOSNN_IMPL_INPUTS_MASKED_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Rows under a mask: the columns that it allows, its effect on single elements, and attention sinks.
// A mask is a source of rows and has two halves. The half that rules out columns by their number (causal, window,
// length) gives each row a range of columns: kernels load and compute the packs that the range touches
// (`gives_packs`) and write the others without reading them (`write_others`). The half that reads single elements
// (boolean, bias, ALiBi, softcap) changes a pack once it is loaded (`adjust`), and the pack is kept in the accumulator
// type. A masked element becomes -inf by a predicate, whatever its value. A sink is a term that `completed` adds to a
// row's state before the epilogue.
// Masked rows are `aligned` or `strided`, never `misaligned`, and their kernels have more registers.

namespace KokkosNN::Impl {

/// Pointer to elements of T or of float, which is known when the program runs.
template <class T>
struct TypedPointer {
  const void* data = nullptr;
  bool is_float    = false;

  KOKKOS_INLINE_FUNCTION bool exists() const { return data != nullptr; }

  /// Calls f(pointer) with the pointer's type.
  template <class F>
  KOKKOS_INLINE_FUNCTION void visit(const F& f) const {
    if constexpr (std::is_same_v<T, float>) {
      f(static_cast<const float*>(data));
    } else if (is_float) {
      f(static_cast<const float*>(data));
    } else {
      f(static_cast<const T*>(data));
    }
  }

  template <class A>
  KOKKOS_INLINE_FUNCTION A load(std::int64_t i) const {
    A value;
    visit([&](const auto* pointer) { value = static_cast<A>(pointer[i]); });
    return value;
  }
};

/// Numbers of rows that a View has, of 32 or 64 bits.
struct CountsOfRows {
  const void* data   = nullptr;
  bool are_of_64_bit = false;

  KOKKOS_INLINE_FUNCTION bool exist() const { return data != nullptr; }
  KOKKOS_INLINE_FUNCTION std::int64_t operator[](std::int64_t i) const {
    return are_of_64_bit ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};

/// Columns that causal masks, windows and lengths allow.
struct ColumnLimits {
  std::int64_t cols  = 0;
  bool has_diagonals = false;
  std::int64_t low   = 0;  ///< lowest column of query q is q + low
  std::int64_t high  = 0;  ///< highest column of query q is q + high
  CountsOfRows lengths;
  CountsOfRows offsets;  ///< are added to q

  /// A row's length and offset, as its Views have them, or what stands for none.
  struct Counts {
    std::int64_t length;
    std::int64_t offset;
  };
  KOKKOS_INLINE_FUNCTION Counts no_counts() const { return {cols, 0}; }

  /// An offset nearer to 0 than the end of an unbounded window, which stays so.
  KOKKOS_INLINE_FUNCTION static std::int64_t bounded(std::int64_t offset) {
    constexpr std::int64_t far = std::int64_t(1) << 59;
    return offset < -far ? -far : (offset > far ? far : offset);
  }

  /// Columns of a row; `query` is a function that finds its q, if asked.
  template <class Query>
  KOKKOS_INLINE_FUNCTION ColumnRange allowed(const Query& query, const Counts& counts) const {
    ColumnRange allowed{0, cols};
    if (has_diagonals) {
      const std::int64_t q = query() + bounded(counts.offset);
      if (q + low > 0) allowed.begin = q + low;
      if (q + high < cols) allowed.end = q + high + 1;
    }
    if (counts.length < allowed.end) allowed.end = counts.length;
    return allowed.begin < allowed.end ? allowed : ColumnRange{0, 0};
  }
};

/// Columns of each row that a mask allows.
struct AllowedColumns : ColumnLimits {
  RowMap query;         ///< row -> its number on the axis of the queries
  RowMap length;        ///< row -> index in lengths
  RowMap offset_place;  ///< row -> index in offsets

  KOKKOS_INLINE_FUNCTION ColumnRange operator()(std::int64_t row) const {
    return allowed([&] { return query(row); }, counts(row));
  }
  /// The row's q, with its offset.
  KOKKOS_INLINE_FUNCTION std::int64_t diagonal(std::int64_t row) const {
    return query(row) + (offsets.exist() ? bounded(offsets[offset_place(row)]) : 0);
  }

 private:
  /// Reads both Views by one piece of code, a loop that is not unrolled: code of its own for the offsets would take
  /// registers from all of a kernel (masked_softmax_backward of strided bf16 with a boolean mask: 86 | 109).
  KOKKOS_INLINE_FUNCTION Counts counts(std::int64_t row) const {
    Counts result = no_counts();
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < 2; ++i) {
      const bool is_offset        = i == 0;
      const CountsOfRows& numbers = is_offset ? offsets : lengths;
      const RowMap& place         = is_offset ? offset_place : length;
      if (!numbers.exist()) continue;
      const std::int64_t n                        = numbers[place(row)];
      (is_offset ? result.offset : result.length) = n;
    }
    return result;
  }
};

/// Range of the packs that a row's allowed columns touch; empty if no column is allowed.
template <int V>
KOKKOS_INLINE_FUNCTION ColumnRange packs_of(const ColumnRange& allowed, std::int64_t cols) {
  const std::int64_t begin = allowed.begin & -std::int64_t(V);
  const std::int64_t end   = (allowed.end + V - 1) & -std::int64_t(V);
  return cols == 0 ? ColumnRange{0, 0} : ColumnRange{begin, end < cols ? end : cols};
}

/// Attention sink of each row.
template <class T>
struct RowSinks {
  TypedPointer<T> logits;
  RowMap place;

  /// Sink of a row; -inf without sinks.
  template <class A>
  KOKKOS_INLINE_FUNCTION A of(std::int64_t row) const {
    return logits.exists() ? logits.template load<A>(place(row)) : -Kokkos::Experimental::infinity_v<A>;
  }
};

/// State of a sink, a logit that is not scaled: a sum of one exponential. NaN and +inf spoil the row, as an element's
/// do, but a log-sum-exp of +inf is infinite.
template <class Params, class A = typename Params::accumulator>
KOKKOS_INLINE_FUNCTION typename Params::State state_of_sink(const Params& params, A sink) {
  using W = typename Params::wide_sum;
  if (Params::has_lse && sink == Kokkos::Experimental::infinity_v<A>) return {sink, W{A(1)}};
  if (!(sink < Kokkos::Experimental::infinity_v<A>)) {
    return {-Kokkos::Experimental::infinity_v<A>, W{Kokkos::Experimental::quiet_NaN_v<A>}};
  }
  const A reference = params.exp.reference_of(unscaled(sink, params.exp.scale()));
  const auto at     = params.exp.at(reference);
  // One of the two subtractions is of 0. The other leaves less than one, unless the sink is beyond the range of every
  // scaled x: then its weight, beside a logit near the end of that range, is as far from 1 as numbers go.
  const A rest = fused_multiply_add(-params.exp.scale(), at.base, fused_multiply_add(-at.exponent, log_of_2<A>, sink)) -
                 at.exponent * log_of_2_low<A>;
  using C      = Exp2Constants<A>;
  return {reference, W{Kokkos::exp(at_most(at_least(rest, C::log_of_least), C::log_of_most))}};
}

/// True if a thread has registers for operands of several packs at once, bias or mask. LLVM's allocation on HIP leaves
/// none.
#if defined(__CUDA_ARCH__)
inline constexpr bool has_registers_beside_packs = true;
#else
inline constexpr bool has_registers_beside_packs = false;
#endif

/// Half of a mask that reads single elements of x, for a whole call. The logit is softcap(scale x) + bias - slope
/// |distance|, the scale a row's own where there are scales.
template <class T, class A>
struct ElementMask {
  bool folds_scale = false;  ///< scale and softcap are applied here, and SoftmaxParams has a scale of 1
  A scale          = 1;
  A softcap        = 0;  ///< 0: none
  A inner_scale    = 1;  ///< scale / softcap
  TypedPointer<T> bias;
  std::int64_t bias_stride = 0;  ///< distance of its columns
  RowMap bias_place;
  const std::uint8_t* keep = nullptr;
  std::int64_t keep_stride = 0;
  RowMap keep_place;
  TypedPointer<T> slopes;
  RowMap slope_place;
  std::int64_t alibi_offset = 0;
  TypedPointer<T> scales;
  RowMap scale_place;

  /// Mask of a row's columns from some column on.
  struct Columns {
    const ElementMask& all;
    TypedPointer<T> bias;
    const std::uint8_t* keep;
    A factor;  ///< of x: scale, or inner_scale under a softcap, times the row's own scale
    A slope;
    A distance;  ///< distance of the first column from the diagonal

    /// Turns a pack of x into logits; `is_inner`: none of its elements is ruled out by its column.
    template <int V>
    KOKKOS_INLINE_FUNCTION void to_logits(Pack<A, V>& pack, int place, int first, int last, bool is_inner) const {
      cap_or_scale(pack);
      if (bias.exists()) add_bias(pack, place, first, last, is_inner);
      add_slope(pack, place);
      if (keep != nullptr) drop(pack, place, first, last, is_inner);
    }

    /// Turns K packs, all inner, into logits, and requests all of their operands before it waits for any. Returns false
    /// and does nothing if the operands do not lie in packs, or are slopes alone, which are faster one pack at a time.
    template <int V, int K>
    KOKKOS_INLINE_FUNCTION bool to_logits_at_once(Pack<A, V> (&packs)[K], const PackPositions& positions) const {
      const bool has_slopes_alone = all.slopes.exists() && !bias.exists() && keep == nullptr;
      if (has_slopes_alone || !lies_in_packs<V>(positions.place(0))) return false;
      constexpr int most = K < 4 ? K : 4;  // more of them lack registers
      KOKKOSNN_IMPL_UNROLL
      for (int begin = 0; begin < K; begin += most) {
        const auto each = [&](const auto& f) {
          KOKKOSNN_IMPL_UNROLL
          for (int k = begin; k < begin + most && k < K; ++k) f(packs[k], positions.place(k), k - begin);
        };
        each([&](Pack<A, V>& pack, int, int) { cap_or_scale(pack); });
        if (bias.exists()) add_biases<V, most>(each);
        each([&](Pack<A, V>& pack, int place, int) { add_slope(pack, place); });
        if (keep != nullptr) drop_some<V, most>(each);
      }
      return true;
    }

   private:
    template <int V>
    KOKKOS_INLINE_FUNCTION void cap_or_scale(Pack<A, V>& pack) const {
      if (all.softcap != A(0)) {
        for (int v = 0; v < V; ++v) pack[v] = all.softcap * Kokkos::tanh(pack[v] * factor);
      } else if (all.folds_scale && !bias.exists()) {
        for (int v = 0; v < V; ++v) pack[v] *= factor;
      }
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void add_slope(Pack<A, V>& pack, int place) const {
      if (all.slopes.exists()) {
        for (int v = 0; v < V; ++v) pack[v] -= slope * Kokkos::abs(distance + static_cast<A>(place + v));
      }
    }

    /// Adds a bias; without a softcap the product with x's scale is fused with the sum.
    template <class B, int V>
    KOKKOS_INLINE_FUNCTION void add_values(Pack<A, V>& pack, const Pack<B, V>& values) const {
      const A own = all.softcap != A(0) ? A(1) : factor;
      for (int v = 0; v < V; ++v) pack[v] = multiply_add(pack[v], own, static_cast<A>(values[v]));
    }

    /// True if bias and `keep` can be loaded in packs from an offset at which a pack begins.
    template <int V>
    KOKKOS_INLINE_FUNCTION bool lies_in_packs(int place) const {
      bool bias_does = true;
      if (bias.exists()) {
        bias.visit([&](const auto* row) {
          using B   = std::remove_cvref_t<decltype(*row)>;
          bias_does = moves_whole_packs<const B, V>(row + place * all.bias_stride, all.bias_stride);
        });
      }
      return bias_does && (keep == nullptr ||
                           moves_whole_packs<const std::uint8_t, V>(keep + place * all.keep_stride, all.keep_stride));
    }

    /// Calls each(f), which calls f(pack, its offset, its number) for up to `most` packs.
    template <int V, int most, class Each>
    KOKKOS_INLINE_FUNCTION void add_biases(const Each& each) const {
      bias.visit([&](const auto* row) {
        using B = std::remove_cvref_t<decltype(*row)>;
        Pack<B, V> beside[most];
        each([&](Pack<A, V>&, int place, int i) { beside[i] = whole_pack<V>(row + place); });
        each([&](Pack<A, V>& pack, int, int i) { add_values(pack, beside[i]); });
      });
    }

    template <int V, int most, class Each>
    KOKKOS_INLINE_FUNCTION void drop_some(const Each& each) const {
      Pack<std::uint8_t, V> beside[most];
      each([&](Pack<A, V>&, int place, int i) { beside[i] = whole_pack<V>(keep + place); });
      each([&](Pack<A, V>& pack, int, int i) { drop_where_zero(pack, beside[i]); });
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void add_bias(Pack<A, V>& pack, int place, int first, int last, bool is_inner) const {
      bias.visit([&](const auto* row) {
        using B            = std::remove_cvref_t<decltype(*row)>;
        const B* const own = row + place * all.bias_stride;
        Pack<B, V> values;
        load_side<V>(values, own, all.bias_stride, place, first, last, is_inner, B(0));
        add_values(pack, values);
      });
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void drop(Pack<A, V>& pack, int place, int first, int last, bool is_inner) const {
      Pack<std::uint8_t, V> kept;
      load_side<V>(kept, keep + place * all.keep_stride, all.keep_stride, place, first, last, is_inner,
                   std::uint8_t(0));
      drop_where_zero(pack, kept);
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION static void drop_where_zero(Pack<A, V>& pack, const Pack<std::uint8_t, V>& kept) {
      for (int v = 0; v < V; ++v) pack[v] = kept[v] != 0 ? pack[v] : -Kokkos::Experimental::infinity_v<A>;
    }

    template <int V, class B>
    KOKKOS_INLINE_FUNCTION static Pack<B, V> whole_pack(const B* from) {
      KOKKOS_IF_ON_DEVICE((return *reinterpret_cast<const Pack<B, V>*>(from);))
      KOKKOS_IF_ON_HOST((Pack<B, V> pack; for (int v = 0; v < V; ++v) pack[v] = from[v]; return pack;))
    }

    /// Loads the pack at `own`; elements outside of x's allowed columns are not read.
    template <int V, class B>
    KOKKOS_INLINE_FUNCTION static void load_side(Pack<B, V>& values, const B* own, std::int64_t stride, int place,
                                                 int first, int last, bool is_inner, B pad) {
      if (is_inner && moves_whole_packs<const B, V>(own, stride)) {
        values = whole_pack<V>(own);
      } else {
        const std::int64_t step = anew_argument(stride);
        for (int v = 0; v < V; ++v) {
          values[v] = place + v >= first && place + v < last ? own[v * step] : pad;
        }
      }
    }
  };

  /// Mask of one row.
  struct Row {
    const ElementMask& all;
    TypedPointer<T> bias;
    const std::uint8_t* keep;
    A factor;
    A slope;
    std::int64_t diagonal;

    KOKKOS_INLINE_FUNCTION Columns from(std::int64_t start) const {
      Columns columns_from{all, bias, keep, factor, slope, static_cast<A>(start - diagonal)};
      if (bias.exists()) columns_from.bias = moved(bias, start * all.bias_stride);
      if (keep != nullptr) columns_from.keep = keep + start * all.keep_stride;
      return columns_from;
    }
  };

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r, const AllowedColumns& range) const {
    Row row{*this, bias, keep, softcap != A(0) ? inner_scale : scale, A(0), 0};
    if (bias.exists()) row.bias = moved(bias, bias_place(r));
    if (keep != nullptr) row.keep = keep + keep_place(r);
    if (scales.exists()) row.factor *= scales.template load<A>(scale_place(r));
    if (slopes.exists()) {
      row.slope    = slopes.template load<A>(slope_place(r));
      row.diagonal = range.diagonal(r) + alibi_offset;
    }
    return row;
  }

 private:
  KOKKOS_INLINE_FUNCTION static TypedPointer<T> moved(const TypedPointer<T>& pointer, std::int64_t elements) {
    TypedPointer<T> result = pointer;
    pointer.visit([&](const auto* data) { result.data = data + elements; });
    return result;
  }
};

/// Mask that rules out columns by their numbers only.
struct NoElementMask {
  struct Row {
    KOKKOS_INLINE_FUNCTION Row from(std::int64_t) const { return {}; }
  };
  KOKKOS_INLINE_FUNCTION Row row(std::int64_t, const AllowedColumns&) const { return {}; }
};

/// Columns of a masked row from some column on.
template <class T, RowForm form, class A, class Elements>
struct MaskedColumns : MemoryColumns<T, form> {
  static constexpr bool has_element_mask = !std::is_same_v<Elements, NoElementMask::Row>;
  static constexpr bool adjusts_packs    = true;
  static constexpr bool adjusts_tiles    = true;
  static constexpr bool masks_words      = !has_element_mask;

  int first;  ///< first offset that is allowed
  int last;   ///< end of those that are allowed
  Elements elements;

  /// These columns without those behind a window. A part of a row may end within a tile, whose padding is no logit: it
  /// must not be scaled, capped or biased.
  KOKKOS_INLINE_FUNCTION MaskedColumns within(const TileBounds& window) const
    requires(has_element_mask)
  {
    MaskedColumns inside = *this;
    if (window.end < last) inside.last = window.end;
    return inside;
  }

  /// Turns a pack that was loaded and widened into logits.
  template <int V>
  KOKKOS_INLINE_FUNCTION void adjust(Pack<A, V>& pack, int place) const {
    if (has_element_mask && place >= last) {  // the whole pack is out of range, whatever single elements are
      pack = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
      return;
    }
    const bool is_inner = place >= first && place + V <= last;
    if constexpr (has_element_mask) elements.to_logits(pack, place, first, last, is_inner);
    if (is_inner) return;
    for (int v = 0; v < V; ++v) {
      if (place + v < first || place + v >= last) pack[v] = -Kokkos::Experimental::infinity_v<A>;
    }
  }

  /// Turns a tile's packs into logits. Returns false and does nothing if each pack must be decided by itself.
  template <int V, int K>
  KOKKOS_INLINE_FUNCTION bool adjust_tile(Pack<A, V> (&packs)[K], const PackPositions& positions) const {
    if constexpr (has_element_mask && has_registers_beside_packs) {
      const bool is_inner = positions.place(0) >= first && positions.place(K - 1) + V <= last;
      return is_inner && elements.to_logits_at_once(packs, positions);
    } else {
      return false;
    }
  }

  /// Masks a pack of 16-bit elements, two a word.
  template <int V, class Element>
  KOKKOS_INLINE_FUNCTION void mask_words(Pack<std::uint32_t, V / 2>& words, int place, Element pad) const {
    if (place >= first && place + V <= last) return;
    const std::uint32_t low  = Kokkos::bit_cast<std::uint16_t>(pad);
    const std::uint32_t high = low << 16;
    for (int w = 0; w < V / 2; ++w) {
      const int p = place + 2 * w;
      if (p < first || p >= last) words[w] = (words[w] & 0xffff0000u) | low;
      if (p + 1 < first || p + 1 >= last) words[w] = (words[w] & 0x0000ffffu) | high;
    }
  }
};

/// Row of which only the columns `allowed` take part.
template <class T, RowForm form, class A, class Elements>
struct MaskedRow {
  using value_type                      = std::remove_const_t<T>;
  static constexpr bool has_edges       = false;
  static constexpr bool gives_packs     = true;
  static constexpr bool completes_state = true;
  static constexpr bool masks_pairs     = false;

  MemoryRow<T, form> x;
  ColumnRange allowed;
  A sink;
  Elements elements;

  template <int V>
  KOKKOS_INLINE_FUNCTION ColumnRange packs(std::int64_t cols) const {
    return packs_of<V>(allowed, cols);
  }

  template <int V>
  KOKKOS_INLINE_FUNCTION auto from(std::int64_t start) const {
    using Columns = MaskedColumns<T, form, A, std::decay_t<decltype(elements.from(start))>>;
    return Columns{x.template from<V>(start), place(allowed.begin, start), place(allowed.end, start),
                   elements.from(start)};
  }

  KOKKOS_INLINE_FUNCTION void clear_policy() {}

  /// Adds the row's sink to its state.
  template <class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State completed(const Params& params,
                                                          const typename Params::State& state) const {
    if (sink == -Kokkos::Experimental::infinity_v<A>) return state;
    return merge_two(params, state, state_of_sink(params, sink));
  }

 private:
  /// Offset of a column from `start`, clamped to 2^30: tiles are shorter.
  KOKKOS_INLINE_FUNCTION static int place(std::int64_t column, std::int64_t start) {
    constexpr std::int64_t far  = std::int64_t(1) << 30;
    const std::int64_t distance = column - start;
    return static_cast<int>(distance < -far ? -far : (distance > far ? far : distance));
  }
};

/// Rows of x under a mask.
template <class T, RowForm row_form, class A, class Elements>
struct MaskedRows {
  using value_type                       = std::remove_const_t<T>;
  static constexpr RowForm form          = row_form;
  static constexpr bool has_element_mask = !std::is_same_v<Elements, NoElementMask>;
  static constexpr bool looks_ahead      = false;
  static_assert(form != RowForm::misaligned);

  MemoryRows<T, form> x;
  AllowedColumns range;
  RowSinks<value_type> sinks;
  Elements elements;

  KOKKOS_INLINE_FUNCTION auto row(std::int64_t r) const {
    using Row = MaskedRow<T, form, A, std::decay_t<decltype(elements.row(r, range))>>;
    return Row{x.row(r), range(r), sinks.template of<A>(r), elements.row(r, range)};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_MASKED_HPP
