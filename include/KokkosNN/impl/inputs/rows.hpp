// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ROWS_HPP
#define KOKKOSNN_IMPL_INPUTS_ROWS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <climits>
#include <cstdint>
#include <type_traits>

// Sources and outputs of rows: Views in memory and user functors.
// A kernel takes one row, `rows.row(r)`, then the row's columns from some column on, `row.from<V>(start)`, and moves
// packs by their offset from that column: `load_pack<V>(c, window, pad)`, `store_pack<V>(pack, c, window)`. Offsets are
// ints: 64-bit arithmetic stays out of the inner loops. A `misaligned` row also has edges: elements in front of its
// first whole pack and behind its last.

namespace KokkosNN::Impl {
/// Columns of a row in memory, from some column on. Unless the form is `strided`, packs are aligned, and each lies in
/// the row or outside of it, as the launch has checked.
template <class T, RowForm form>
struct MemoryColumns {
  using value_type                   = std::remove_const_t<T>;
  static constexpr bool always_whole = form != RowForm::strided;
  static constexpr bool adjusts_packs =
      false;  ///< `adjust<V>(pack, offset)` turns what was loaded and widened into logits
  static constexpr bool adjusts_tiles = false;  ///< `adjust_tile(packs, positions)`: all packs of a tile at once
  static constexpr bool masks_words =
      false;  ///< `mask_words<V>(words, offset, pad)`: 16-bit elements as they were loaded

  T* base;
  std::int64_t stride;
  bool whole_packs;
  LinePolicy policy = {};

  /// True if every pack can be moved at once or lies outside of the row.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const TileBounds& window) const {
    return whole_packs && window.splits_no_pack<V>();
  }

  /// Loads a pack that lies in the row, on a GPU, as a P.
  template <class P>
  KOKKOS_INLINE_FUNCTION P load_as(int c) const {
    return load_at_once(reinterpret_cast<const P*>(base + c), policy);
  }

  /// Loads a pack that lies in the row.
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_inner_pack(int c) const {
    KOKKOS_IF_ON_DEVICE((return load_as<Pack<value_type, V>>(c);))
    KOKKOS_IF_ON_HOST((Pack<value_type, V> pack; for (int v = 0; v < V; ++v) pack[v] = base[c + v]; return pack;))
  }

  /// Loads a pack that lies in the row as words of two 16-bit elements.
  template <int V>
  KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
    KOKKOS_IF_ON_DEVICE((return load_as<Pack<std::uint32_t, V / 2>>(c);))
    KOKKOS_IF_ON_HOST((return words_of(load_inner_pack<V>(c));))
  }

  /// Prefetches a pack into the last-level cache, where there is an instruction for that.
  template <int V>
  KOKKOS_INLINE_FUNCTION void prefetch_pack([[maybe_unused]] int c, [[maybe_unused]] const TileBounds& window) const {
#if defined(__CUDA_ARCH__)
    if (stride == 1 && c < window.end) asm volatile("prefetch.global.L2 [%0];" ::"l"(base + c));
#endif
  }

  /// Loads a pack that lies in the row or outside of it.
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_whole_pack(int c, const TileBounds& window, value_type pad) const {
    Pack<value_type, V> pack;
    for (int v = 0; v < V; ++v) pack[v] = pad;
    if (c < window.end) pack = load_inner_pack<V>(c);
    return pack;
  }

  template <int V>
  KOKKOS_INLINE_FUNCTION void store_whole_pack(const Pack<value_type, V>& pack, int c) const {
    KOKKOS_IF_ON_DEVICE((store_at_once(reinterpret_cast<Pack<value_type, V>*>(base + c), pack);))
    KOKKOS_IF_ON_HOST((for (int v = 0; v < V; ++v) base[c + v] = pack[v];))
  }

  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_pack(int c, const TileBounds& window, value_type pad) const {
    if (whole_packs && window.has_pack<V>(c)) return load_whole_pack<V>(c, window, pad);
    Pack<value_type, V> pack;
    KOKKOS_IF_ON_DEVICE((const T* const first                = base + opaque(c) * opaque_argument(stride);
                         const std::int64_t step             = anew_argument(stride);
                         for (int v = 0; v < V; ++v) pack[v] = c + v < window.end ? first[v * step] : pad;))
    KOKKOS_IF_ON_HOST((const int end                         = window.end - c < V ? window.end - c : V;
                       for (int v = 0; v < V; ++v) pack[v]   = pad;
                       for (int v = 0; v < end; ++v) pack[v] = base[(c + v) * stride];))
    return pack;
  }

  template <int V>
  KOKKOS_INLINE_FUNCTION void store_pack(const Pack<value_type, V>& pack, int c, const TileBounds& window) const {
    if (whole_packs && window.has_pack<V>(c)) return store_whole_pack(pack, c);
    T* const first          = base + opaque(c) * opaque_argument(stride);
    const std::int64_t step = anew_argument(stride);
    for (int v = 0; v < V; ++v) {
      if (c + v < window.end) first[v * step] = pack[v];
    }
  }
};

/// Columns whose whole packs leave the caches first; of a `strided` row the columns unchanged.
template <class T, RowForm form>
struct StreamedColumns : MemoryColumns<T, form> {
  template <int V>
  KOKKOS_INLINE_FUNCTION void store_whole_pack(const Pack<T, V>& pack, int c) const {
    KOKKOS_IF_ON_DEVICE((store_at_once<true>(reinterpret_cast<Pack<T, V>*>(this->base + c), pack);))
    KOKKOS_IF_ON_HOST((MemoryColumns<T, form>::store_whole_pack(pack, c);))
  }
};
template <class Columns>
KOKKOS_INLINE_FUNCTION Columns streamed(const Columns& columns_from) {
  return columns_from;
}
template <class T, RowForm form>
  requires(form != RowForm::strided)
KOKKOS_INLINE_FUNCTION StreamedColumns<T, form> streamed(const MemoryColumns<T, form>& columns_from) {
  return {columns_from};
}

/// One row in memory, to read (`T` const) or write.
template <class T, RowForm form>
struct MemoryRow {
  using value_type                      = std::remove_const_t<T>;
  static constexpr bool has_edges       = form == RowForm::misaligned;
  static constexpr bool is_unit_stride  = form != RowForm::strided;
  static constexpr bool gives_packs     = false;
  static constexpr bool completes_state = false;
  static constexpr bool masks_pairs     = false;

  T* base;
  std::int64_t stride;
  LinePolicy policy = {};

  KOKKOS_INLINE_FUNCTION void clear_policy() { policy = {}; }

  /// Number of elements in front of the first pack boundary, where the packs of a row with edges begin.
  template <int V>
  KOKKOS_INLINE_FUNCTION int head() const {
    return (V - pack_phase<T, V>(base)) % V;
  }
  /// Columns from column `start` on.
  template <int V>
  KOKKOS_INLINE_FUNCTION MemoryColumns<T, form> from(std::int64_t start) const {
    // Hidden from the optimiser: nvcc would add `start` to the offset of every pack, in 64 bits.
    if constexpr (is_unit_stride) return {opaque(base + start), 1, true, policy};
    T* const first = base + start * stride;
    return {first, stride, moves_whole_packs<T, V>(first, stride), policy};
  }

  KOKKOS_INLINE_FUNCTION value_type load_one(std::int64_t c) const { return base[is_unit_stride ? c : c * stride]; }
  KOKKOS_INLINE_FUNCTION void store_one(value_type value, std::int64_t c) const {
    base[is_unit_stride ? c : c * stride] = value;
  }
};

/// Map of a form's rows: aligned rows lie at one distance; the others have a RowMap, or a RowStride if the kernel is
/// compiled for it.
template <RowForm form>
using MapOf = std::conditional_t<form == RowForm::aligned, RowStride, RowMap>;

/// Distance of a row's columns. It takes no room among a kernel's arguments where they are neighbours.
template <RowForm form>
struct ColumnStride {
  ColumnStride() = default;
  explicit ColumnStride(std::int64_t) {}
  KOKKOS_INLINE_FUNCTION constexpr std::int64_t between_columns() const { return 1; }
};
template <>
struct ColumnStride<RowForm::strided> {
  std::int64_t stride = 1;

  ColumnStride() = default;
  explicit ColumnStride(std::int64_t between) : stride(between) {}
  KOKKOS_INLINE_FUNCTION std::int64_t between_columns() const { return stride; }
};

/// True for contiguous input rows: only these support prefetching and an L2 eviction hint, and only these carry the
/// extra kernel arguments.
template <class T, RowForm form>
inline constexpr bool can_look_ahead = (form != RowForm::strided) && std::is_const_v<T>;
template <bool can>
struct LooksAhead {
  KOKKOS_INLINE_FUNCTION constexpr LinePolicy line_policy() const { return {}; }
};
template <>
struct LooksAhead<true> {
  std::int64_t elements_ahead = 0;  ///< distance from a team's own rows to those that it prefetches
  int bytes_ahead             = 0;  ///< number of bytes that it prefetches
  LinePolicy policy           = {};

  KOKKOS_INLINE_FUNCTION LinePolicy line_policy() const { return policy; }
};

/// Rows of a View: the reduced axis and all others as strides. Rows that are not `strided` are contiguous: their kernel
/// has no other path, and registers to spare.
template <class T, RowForm row_form, class Map = MapOf<row_form>>
struct MemoryRows : ColumnStride<row_form>, LooksAhead<can_look_ahead<T, row_form>> {
  using value_type                   = std::remove_const_t<T>;
  static constexpr RowForm form      = row_form;
  static constexpr bool looks_ahead  = can_look_ahead<T, row_form>;
  static constexpr bool takes_states = false;

  static constexpr bool is_at_one_stride = std::is_same_v<Map, RowStride>;

  T* data = nullptr;
  Map map = {};

  MemoryRows() = default;
  MemoryRows(T* elements, std::int64_t between_columns, const Map& row_map)
      : ColumnStride<form>(between_columns), data(elements), map(row_map) {}

  KOKKOS_FORCEINLINE_FUNCTION MemoryRow<T, form> row(std::int64_t r) const {
    return {opaque(data + map(r)), this->between_columns(), this->line_policy()};
  }

  /// Rows with an eviction policy for the last-level cache.
  MemoryRows evicted(Eviction eviction) const {
    MemoryRows rows = *this;
    if constexpr (looks_ahead) rows.policy = LinePolicy(eviction);
    return rows;
  }

  /// Sets up `prefetch` for the `rows` rows that lie `rows_ahead` behind a row. Returns false if they are not
  /// contiguous.
  bool look_ahead(std::int64_t rows_ahead, int rows, std::int64_t cols)
    requires(looks_ahead)
  {
    const std::int64_t bytes  = rows * cols * std::int64_t(sizeof(T));
    const std::int64_t stride = map.only_stride();
    const bool is_one_piece   = stride != 0 && (rows == 1 || stride == cols);
    if (!is_one_piece || bytes < 16 || bytes > INT_MAX) return false;
    this->elements_ahead = rows_ahead * stride;
    this->bytes_ahead    = static_cast<int>(bytes);
    return true;
  }
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t row) const
    requires(looks_ahead)
  {
    prefetch_bytes(data + map(row) + this->elements_ahead, this->bytes_ahead);
  }
};

/// Prefetches the rows of a later team, if this team, whose rows begin at `first`, is one of those that prefetch:
/// memory would be idle while a wave of teams computes. The cache's size limits how far ahead they may be
/// (`RowPlan::rows_ahead`). Large calls whose threads have enough loads in flight do not prefetch: with evict-last
/// loads, results are written back early and in order, which prefetched rows disturb. (The address comes from the
/// team's first row, as the instruction needs an address that is equal in all threads.)
template <class Member, class Source>
KOKKOS_INLINE_FUNCTION void prefetch_later_rows(const Member& team, const Source& source, std::int64_t first,
                                                int prefetching_teams) {
  if constexpr (Source::looks_ahead) {
    if (team.league_rank() < prefetching_teams && team.team_rank() == 0) source.prefetch(first);
  }
}

/// Output of one value a row in memory: a log-sum-exp.
template <class T, class Map = RowMap>
struct MemoryScalars {
  using value_type                   = T;
  static constexpr bool takes_states = false;

  T* data;
  Map map;

  template <class A>
  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const {
    data[map(row)] = static_cast<T>(value);
  }
};

/// Source of rows from a user's load functor.
template <Concepts::RowLoad Load>
struct FunctorRows {
  using value_type                  = typename Load::value_type;
  static constexpr RowForm form     = RowForm::strided;
  static constexpr bool looks_ahead = false;

  struct Columns {
    using value_type                    = typename Load::value_type;
    static constexpr bool always_whole  = false;
    static constexpr bool adjusts_packs = false;
    static constexpr bool adjusts_tiles = false;
    static constexpr bool masks_words   = false;

    const Load& load;
    std::int64_t r;
    std::int64_t start;

    template <int V>
    KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const TileBounds& window) const {
      return window.splits_no_pack<V>();
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void prefetch_pack(int, const TileBounds&) const {}

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_inner_pack(int c) const {
      return load.template load<V>(r, start + c);
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
      return words_of(load_inner_pack<V>(c));
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_whole_pack(int c, const TileBounds& window, value_type pad) const {
      if (c < window.end) return load_inner_pack<V>(c);
      Pack<value_type, V> pack;
      for (int v = 0; v < V; ++v) pack[v] = pad;
      return pack;
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_pack(int c, const TileBounds& window, value_type pad) const {
      if (window.has_pack<V>(c)) return load.template load<V>(r, start + c);
      Pack<value_type, V> pack;
      for (int v = 0; v < V; ++v) pack[v] = c + v < window.end ? load.template load<1>(r, start + c + v)[0] : pad;
      return pack;
    }
  };

  struct Row {
    using value_type                      = typename Load::value_type;
    static constexpr bool has_edges       = false;
    static constexpr bool gives_packs     = false;
    static constexpr bool completes_state = false;
    static constexpr bool masks_pairs     = false;

    KOKKOS_INLINE_FUNCTION void clear_policy() {}

    const Load& load;
    std::int64_t r;

    template <int V>
    KOKKOS_INLINE_FUNCTION Columns from(std::int64_t start) const {
      return {load, r, start};
    }
  };

  Load load;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {load, r}; }
};

/// Output of rows to a user's store functor, which takes results in the accumulator type A.
template <class Store, class A>
struct FunctorOutput {
  using value_type                   = A;
  static constexpr bool takes_states = false;

  struct Columns {
    using value_type                   = A;
    static constexpr bool always_whole = false;

    const Store& output;
    std::int64_t r;
    std::int64_t start;

    template <int V>
    KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const TileBounds& window) const {
      return window.splits_no_pack<V>();
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void store_whole_pack(const Pack<A, V>& pack, int c) const {
      output.template store<V>(pack, r, start + c);
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void store_pack(const Pack<A, V>& pack, int c, const TileBounds& window) const {
      if (window.has_pack<V>(c)) {
        output.template store<V>(pack, r, start + c);
        return;
      }
      for (int v = 0; v < V; ++v) {
        if (c + v < window.end) output.template store<1>(Pack<A, 1>{{pack[v]}}, r, start + c + v);
      }
    }
  };

  struct Row {
    using value_type = A;

    const Store& output;
    std::int64_t r;

    template <int V>
    KOKKOS_INLINE_FUNCTION Columns from(std::int64_t start) const {
      return {output, r, start};
    }
  };

  Store m_store;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {m_store, r}; }
  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const { m_store.store(value, row); }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ROWS_HPP
