// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_ROWS_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_ROWS_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Where rows come from and go to. A kernel asks a source or sink for one row, `rows.row(r)`, then for a stretch of it
// from some column on, `row.from<V>(start)`, and moves packs by their place in the stretch: `load_pack<V>(c, window,
// pad)`, `store_pack<V>(pack, c, window)`. Places in a stretch are ints: 64-bit arithmetic stays out of the inner
// loops. A `shifted` row has rims besides, elements in front of its first whole pack and behind its last.

namespace KokkosNN::Impl {

inline constexpr int max_row_dims = 7;

/// Row number -> offset in elements: up to seven axes, the last one runs fastest. Rows are fewer than 2^53.
struct RowMap {
  int n                             = 0;
  std::int64_t extent[max_row_dims] = {};
  std::int64_t stride[max_row_dims] = {};
  double inverse[max_row_dims]      = {};  // of extent

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
    return n <= 1 ? row * stride[0] : along_axes(row);
  }
  /// The distance of neighbouring rows, or 0 if there is not one.
  std::int64_t only_stride() const { return n <= 1 ? stride[0] : 0; }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t along_axes(std::int64_t row) const {
    std::int64_t offset = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int k = n - 1; k > 0; --k) {
      // A 64-bit division is a subroutine on GPUs, around which a kernel would spill what it holds in registers.
      std::int64_t quotient = static_cast<std::int64_t>(static_cast<double>(row) * inverse[k]);
      std::int64_t index    = row - quotient * extent[k];
      const int correction  = index < 0 ? -1 : (index >= extent[k] ? 1 : 0);
      quotient += correction;
      index -= correction * extent[k];
      offset += index * stride[k];
      row = quotient;
    }
    return offset + row * stride[0];
  }
};

/// The same for rows at one distance: less for a kernel to be given.
struct RowStride {
  std::int64_t stride = 0;

  RowStride() = default;
  RowStride(const RowMap& map) : stride(map.stride[0]) {}

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const { return row * stride; }
  std::int64_t only_stride() const { return stride; }
};

/// Which columns of rows of logits are at hand: those of the classes first to first + columns - 1. All of them, but for
/// rows that several ranks share.
struct ClassShard {
  std::int64_t first   = 0;
  std::int64_t columns = 0;
  std::int64_t classes = 0;
};

/// The places of a stretch that belong to the row: 0 <= c < end. The last pack may stick out; elements outside are
/// loaded as `pad` and not stored.
struct Window {
  int end;

  template <int V>
  KOKKOS_INLINE_FUNCTION bool has_pack(int c) const {
    return c + V <= end;
  }
  /// Whether a pack lies either in the row or outside of it.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool splits_no_pack() const {
    return end % V == 0;
  }
};

/// Elements of T between the last pack boundary and `pointer`.
template <class T, int V>
KOKKOS_INLINE_FUNCTION int pack_phase(const T* pointer) {
  return static_cast<int>((reinterpret_cast<std::uintptr_t>(pointer) / sizeof(T)) % V);
}

/// Whether packs can be moved whole from `pointer` on: unit stride, and on a GPU alignment to one access.
template <class T, int V>
KOKKOS_INLINE_FUNCTION bool moves_whole_packs(const T* pointer, std::int64_t stride) {
  KOKKOS_IF_ON_DEVICE((
      return stride == 1 && reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pack<std::remove_const_t<T>, V>) == 0;))
  KOKKOS_IF_ON_HOST(((void)pointer; return stride == 1;))
}

/// One access of a whole pack, on a GPU. The words go through registers by name: nvcc splits the store of an array. 16
/// bytes that will not be read soon (`streams`) leave the last-level cache ahead of other lines.
template <bool streams = false, class P>
KOKKOS_INLINE_FUNCTION void store_at_once([[maybe_unused]] P* to, [[maybe_unused]] const P& pack) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(P) == 16) {
    const auto words = Kokkos::bit_cast<uint4>(pack);
    if constexpr (streams) {
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z),
                   "r"(words.w)
                   : "memory");
    } else {
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z),
                   "r"(words.w)
                   : "memory");
    }
    return;
  }
  if constexpr (sizeof(P) == 8) {
    const auto words = Kokkos::bit_cast<uint2>(pack);
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.x), "r"(words.y) : "memory");
    return;
  }
#endif
  *to = pack;
}

/// What an access tells the last-level cache of its lines: the upper half of what PTX's createpolicy makes, whose lower
/// half is 0. As a number it comes from a kernel's arguments whenever an access asks for it; what instructions make
/// ahead of a loop over rows stays in registers, and those have other things to hold.
struct LinePolicy {
  std::uint32_t word = 0x10f00000;  // what accesses without a policy tell

  LinePolicy() = default;
  constexpr explicit LinePolicy(Eviction eviction) {
    if (eviction == Eviction::first) word = 0x12f00000;
    if (eviction == Eviction::quarter_last) word = 0x15300000;
    if (eviction == Eviction::half_last) word = 0x15700000;
    if (eviction == Eviction::last) word = 0x14f00000;
  }
};

// Whether accesses take such a word: on NVIDIA GPUs, from Hopper on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define KOKKOSNN_IMPL_LOAD "ld.global.L2::cache_hint"
#define KOKKOSNN_IMPL_STORE "st.global.L2::cache_hint"
#define KOKKOSNN_IMPL_WITH_POLICY(operand) ", " operand ";"
#else
#define KOKKOSNN_IMPL_LOAD "ld.global"
#define KOKKOSNN_IMPL_STORE "st.global"
#define KOKKOSNN_IMPL_WITH_POLICY(operand) ";"
#endif

/// One access that loads a whole pack: nvcc does not know of all pointers that they are to global memory, and the
/// instruction for memory of any kind takes longer. With `fills_line` the last-level cache fetches all of the line:
/// neighbouring teams ask for the rest of it at about that time.
template <bool fills_line = false, class P>
KOKKOS_INLINE_FUNCTION P load_at_once(const P* from, [[maybe_unused]] LinePolicy lines) {
#if defined(__CUDA_ARCH__)
  const std::uint64_t policy = std::uint64_t(lines.word) << 32;
  if constexpr (sizeof(P) == 16) {
    uint4 words;
    asm volatile(KOKKOSNN_IMPL_LOAD ".v4.b32 {%0, %1, %2, %3}, [%4]" KOKKOSNN_IMPL_WITH_POLICY("%5")
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from), "l"(policy)
                 : "memory");
    return Kokkos::bit_cast<P>(words);
  }
  if constexpr (sizeof(P) == 8) {
    uint2 words;
    if constexpr (fills_line) {
      asm volatile(KOKKOSNN_IMPL_LOAD ".L2::128B.v2.b32 {%0, %1}, [%2]" KOKKOSNN_IMPL_WITH_POLICY("%3")
                   : "=r"(words.x), "=r"(words.y)
                   : "l"(from), "l"(policy)
                   : "memory");
    } else {
      asm volatile(KOKKOSNN_IMPL_LOAD ".v2.b32 {%0, %1}, [%2]" KOKKOSNN_IMPL_WITH_POLICY("%3")
                   : "=r"(words.x), "=r"(words.y)
                   : "l"(from), "l"(policy)
                   : "memory");
    }
    return Kokkos::bit_cast<P>(words);
  }
  if constexpr (sizeof(P) == 4 && fills_line) {
    std::uint32_t word;
    asm volatile(KOKKOSNN_IMPL_LOAD ".L2::128B.b32 %0, [%1]" KOKKOSNN_IMPL_WITH_POLICY("%2")
                 : "=r"(word)
                 : "l"(from), "l"(policy)
                 : "memory");
    return Kokkos::bit_cast<P>(word);
  }
#endif
  return *from;
}

/// One access that stores 16 bytes.
template <class P>
KOKKOS_INLINE_FUNCTION void store_at_once(P* to, const P& pack, [[maybe_unused]] LinePolicy lines) {
  static_assert(sizeof(P) == 16);
#if defined(__CUDA_ARCH__)
  const auto words           = Kokkos::bit_cast<uint4>(pack);
  const std::uint64_t policy = std::uint64_t(lines.word) << 32;
  asm volatile(KOKKOSNN_IMPL_STORE ".v4.b32 [%0], {%1, %2, %3, %4}" KOKKOSNN_IMPL_WITH_POLICY("%5")
               :
               : "l"(to), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "l"(policy)
               : "memory");
#else
  *to = pack;
#endif
}
#undef KOKKOSNN_IMPL_LOAD
#undef KOKKOSNN_IMPL_STORE
#undef KOKKOSNN_IMPL_WITH_POLICY

/// Whether one instruction asks for many bytes to be brought into the last-level cache: on NVIDIA GPUs from Hopper on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool has_bulk_prefetch = true;
#else
inline constexpr bool has_bulk_prefetch = false;
#endif

/// That instruction, for about `bytes` bytes from about `begin` on; waits for nothing. Touches no 16 bytes of which
/// [begin, begin + bytes) has none.
KOKKOS_INLINE_FUNCTION void prefetch_bytes([[maybe_unused]] const void* begin, [[maybe_unused]] int bytes) {
#if defined(__CUDA_ARCH__)
  if constexpr (has_bulk_prefetch) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~std::uintptr_t(15);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first), "r"(bytes & ~15));
  }
#endif
}

/// The value itself, but unknown to the optimiser. nvcc would otherwise multiply row by stride again for every pack,
/// and compute the addresses of all elements of all packs, which only rows without whole packs need, ahead of the loop
/// over rows, and spill them.
template <class T>
KOKKOS_INLINE_FUNCTION T opaque(T value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("" : "+f"(value));
  } else if constexpr (std::is_same_v<T, double>) {
    asm volatile("" : "+d"(value));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#elif defined(__HIP_DEVICE_COMPILE__)
  // Not a pointer: what it points to would no longer be known to be global memory.
  if constexpr (!std::is_pointer_v<T>) asm volatile("" : "+v"(value));
#endif
  return value;
}

/// The same for LLVM on HIP alone, which keeps what two passes over a tile have in common, addresses above all, in
/// registers from one to the other, and spills: behind this they are computed anew.
template <class T>
KOKKOS_INLINE_FUNCTION T anew(T value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque(value);
#else
  return value;
#endif
}

/// `opaque` for a number that all threads have alike, a kernel's argument: on HIP it stays a scalar. In `opaque`'s
/// vector register LLVM would keep it from ahead of the loop over rows on, once for each place that asks.
KOKKOS_INLINE_FUNCTION std::int64_t opaque_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__OPTIMIZE__)  // otherwise LLVM has all values in vector registers
  // Nothing once this is inlined; before, a function's argument is in vector registers too.
  int low  = __builtin_amdgcn_readfirstlane(static_cast<int>(value));
  int high = __builtin_amdgcn_readfirstlane(static_cast<int>(value >> 32));
  asm volatile("" : "+s"(low), "+s"(high));
  return static_cast<std::int64_t>(high) << 32 | static_cast<std::uint32_t>(low);
#elif defined(__HIP_DEVICE_COMPILE__)
  return value;
#else
  return opaque(value);
#endif
}

/// `anew` for the same.
KOKKOS_INLINE_FUNCTION std::int64_t anew_argument(std::int64_t value) {
#if defined(__HIP_DEVICE_COMPILE__)
  return opaque_argument(value);
#else
  return value;
#endif
}

/// 0, but no compiler knows: ptxas sees through `opaque`. Those of different numbers are not known to be equal.
template <int number>
KOKKOS_INLINE_FUNCTION std::uint32_t unknown_zero() {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  static_assert(number >= 0 && number < 3);
  return number == 0 ? threadIdx.z : number == 1 ? blockIdx.y : blockIdx.z;  // teams are numbered by the others
#else
  return 0;
#endif
}

/// A pack of a 16-bit type as words of two elements, the first one in the lower half.
template <class T, int V>
KOKKOS_INLINE_FUNCTION Pack<std::uint32_t, V / 2> words_of(const Pack<T, V>& pack) {
  static_assert(sizeof(T) == 2 && V % 2 == 0);
  Pack<std::uint32_t, V / 2> words;
  for (int w = 0; w < V / 2; ++w) {
    const std::uint32_t high = Kokkos::bit_cast<std::uint16_t>(pack[2 * w + 1]);
    words[w]                 = Kokkos::bit_cast<std::uint16_t>(pack[2 * w]) | high << 16;
  }
  return words;
}

/// A stretch of a row in memory. Unless the form is `any`, packs are aligned and lie in the row or outside of it, as
/// the launch has checked.
template <class T, RowForm form>
struct MemoryStretch {
  using value_type                   = std::remove_const_t<T>;
  static constexpr bool always_whole = form != RowForm::any;

  T* base;
  std::int64_t stride;
  bool whole_packs;
  LinePolicy policy = {};

  /// Whether every pack can be moved at once or lies outside of the row.
  template <int V>
  KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const Window& window) const {
    return whole_packs && window.splits_no_pack<V>();
  }

  /// A pack that surely lies in the row.
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_inner_pack(int c) const {
    KOKKOS_IF_ON_DEVICE((return load_at_once(reinterpret_cast<const Pack<value_type, V>*>(base + c), policy);))
    KOKKOS_IF_ON_HOST((Pack<value_type, V> pack; for (int v = 0; v < V; ++v) pack[v] = base[c + v]; return pack;))
  }

  /// The same as words of two 16-bit elements.
  template <int V>
  KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
    KOKKOS_IF_ON_DEVICE((return load_at_once(reinterpret_cast<const Pack<std::uint32_t, V / 2>*>(base + c), policy);))
    KOKKOS_IF_ON_HOST((return words_of(load_inner_pack<V>(c));))
  }

  /// Asks for a pack to be brought into the last-level cache, where there is an instruction for that.
  template <int V>
  KOKKOS_INLINE_FUNCTION void prefetch_pack([[maybe_unused]] int c, [[maybe_unused]] const Window& window) const {
#if defined(__CUDA_ARCH__)
    if (stride == 1 && c < window.end) asm volatile("prefetch.global.L2 [%0];" ::"l"(base + c));
#endif
  }

  /// A pack that lies in the row or outside of it.
  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_whole_pack(int c, const Window& window, value_type pad) const {
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
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_pack(int c, const Window& window, value_type pad) const {
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
  KOKKOS_INLINE_FUNCTION void store_pack(const Pack<value_type, V>& pack, int c, const Window& window) const {
    if (whole_packs && window.has_pack<V>(c)) return store_whole_pack(pack, c);
    T* const first          = base + opaque(c) * opaque_argument(stride);
    const std::int64_t step = anew_argument(stride);
    for (int v = 0; v < V; ++v) {
      if (c + v < window.end) first[v * step] = pack[v];
    }
  }
};

/// A stretch whose whole packs leave the caches first; of other rows the stretch itself.
template <class T, RowForm form>
struct StreamedStretch : MemoryStretch<T, form> {
  template <int V>
  KOKKOS_INLINE_FUNCTION void store_whole_pack(const Pack<T, V>& pack, int c) const {
    KOKKOS_IF_ON_DEVICE((store_at_once<true>(reinterpret_cast<Pack<T, V>*>(this->base + c), pack);))
    KOKKOS_IF_ON_HOST((MemoryStretch<T, form>::store_whole_pack(pack, c);))
  }
};
template <class Stretch>
KOKKOS_INLINE_FUNCTION Stretch streamed(const Stretch& stretch) {
  return stretch;
}
template <class T, RowForm form>
requires(form !=
         RowForm::any) KOKKOS_INLINE_FUNCTION StreamedStretch<T, form> streamed(const MemoryStretch<T, form>& stretch) {
  return {stretch};
}

/// One row in memory, to read (`T` const) or write.
template <class T, RowForm form>
struct MemoryRow {
  using value_type                     = std::remove_const_t<T>;
  static constexpr bool has_rims       = form == RowForm::shifted;
  static constexpr bool is_unit_stride = form != RowForm::any;

  T* base;
  std::int64_t stride;
  LinePolicy policy = {};

  /// Elements in front of the first pack boundary, where the packs of a row with rims begin.
  template <int V>
  KOKKOS_INLINE_FUNCTION int head() const {
    return (V - pack_phase<T, V>(base)) % V;
  }
  /// The stretch from column `start` on.
  template <int V>
  KOKKOS_INLINE_FUNCTION MemoryStretch<T, form> from(std::int64_t start) const {
    // Unknown to the optimiser, or nvcc would add start to the place of every pack, in 64 bits.
    if constexpr (is_unit_stride) return {opaque(base + start), 1, true, policy};
    T* const first = base + start * stride;
    return {first, stride, moves_whole_packs<T, V>(first, stride), policy};
  }

  KOKKOS_INLINE_FUNCTION value_type load_one(std::int64_t c) const { return base[is_unit_stride ? c : c * stride]; }
  KOKKOS_INLINE_FUNCTION void store_one(value_type value, std::int64_t c) const {
    base[is_unit_stride ? c : c * stride] = value;
  }
};

/// The map of rows of a form, if kernels for that form have one: aligned rows lie at one distance.
template <RowForm form>
using MapOf = std::conditional_t<form == RowForm::aligned, RowStride, RowMap>;

/// How far apart a row's columns are. Takes no room among a kernel's arguments where they are neighbours.
template <RowForm form>
struct ColumnStride {
  ColumnStride() = default;
  explicit ColumnStride(std::int64_t) {}
  KOKKOS_INLINE_FUNCTION constexpr std::int64_t between_columns() const { return 1; }
};
template <>
struct ColumnStride<RowForm::any> {
  std::int64_t stride = 1;

  ColumnStride() = default;
  explicit ColumnStride(std::int64_t between) : stride(between) {}
  KOKKOS_INLINE_FUNCTION std::int64_t between_columns() const { return stride; }
};

/// Rows that can be asked for ahead of time, and loaded with a word for the cache: those that are read, if they are
/// contiguous. Others take no room for that.
template <class T, RowForm form>
inline constexpr bool can_look_ahead = (form != RowForm::any) && std::is_const_v<T>;
template <bool can>
struct LooksAhead {
  KOKKOS_INLINE_FUNCTION constexpr LinePolicy line_policy() const { return {}; }
};
template <>
struct LooksAhead<true> {
  std::int64_t elements_ahead = 0;  ///< how far behind its own rows a team looks for rows that another one will load
  int bytes_ahead             = 0;  ///< and how many bytes of them it has brought near
  LinePolicy policy           = {};

  KOKKOS_INLINE_FUNCTION LinePolicy line_policy() const { return policy; }
};

/// The rows of a View, reduced axis and all others as strides. Rows that are not of `any` form are contiguous: the
/// kernel for them has no other path, and registers to spare.
template <class T, RowForm row_form, class Map = MapOf<row_form>>
struct MemoryRows : ColumnStride<row_form>, LooksAhead<can_look_ahead<T, row_form>> {
  using value_type                  = std::remove_const_t<T>;
  static constexpr RowForm form     = row_form;
  static constexpr bool looks_ahead = can_look_ahead<T, row_form>;

  T* data = nullptr;
  Map map = {};

  MemoryRows() = default;
  MemoryRows(T* elements, std::int64_t between_columns, const Map& row_map)
      : ColumnStride<form>(between_columns), data(elements), map(row_map) {}

  KOKKOS_FORCEINLINE_FUNCTION MemoryRow<T, form> row(std::int64_t r) const {
    return {opaque(data + map(r)), this->between_columns(), this->line_policy()};
  }

  /// The same rows, to be given up so by the last-level cache.
  MemoryRows evicted(Eviction eviction) const {
    MemoryRows rows = *this;
    if constexpr (looks_ahead) rows.policy = LinePolicy(eviction);
    return rows;
  }

  /// Sets up `prefetch` to bring near the `rows` rows that lie `rows_ahead` behind a row, if that is one piece of
  /// memory.
  bool look_ahead(std::int64_t rows_ahead, int rows, std::int64_t cols) requires(looks_ahead) {
    const std::int64_t bytes  = rows * cols * std::int64_t(sizeof(T));
    const std::int64_t stride = map.only_stride();
    const bool is_one_piece   = stride != 0 && (rows == 1 || stride == cols);
    if (!is_one_piece || bytes < 16 || bytes > INT_MAX) return false;
    this->elements_ahead = rows_ahead * stride;
    this->bytes_ahead    = static_cast<int>(bytes);
    return true;
  }
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t row) const requires(looks_ahead) {
    prefetch_bytes(data + map(row) + this->elements_ahead, this->bytes_ahead);
  }
};

/// Memory would rest while a wave of teams computes: what a later team loads moves towards it meanwhile, as long as this
/// team, whose rows begin at `first`, is one of those that ask. (Found from the team's first row, which all threads have
/// alike: the instruction takes an address that they have alike.)
template <class Member, class Source>
KOKKOS_INLINE_FUNCTION void prefetch_later_rows(const Member& team, const Source& source, std::int64_t first,
                                                int prefetching_teams) {
  if constexpr (requires { source.prefetch(first); }) {
    if (team.league_rank() < prefetching_teams && team.team_rank() == 0) source.prefetch(first);
  }
}

/// One value a row in memory: where a log-sum-exp goes.
template <class T, class Map = RowMap>
struct MemoryScalars {
  using value_type = T;

  T* data;
  Map map;

  template <class A>
  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const {
    data[map(row)] = static_cast<T>(value);
  }
};

/// A user's load functor as a source of rows.
template <Concepts::RowLoad Load>
struct FunctorRows {
  using value_type              = typename Load::value_type;
  static constexpr RowForm form = RowForm::any;

  struct Stretch {
    using value_type                   = typename Load::value_type;
    static constexpr bool always_whole = false;

    const Load& load;
    std::int64_t r;
    std::int64_t start;

    template <int V>
    KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const Window& window) const {
      return window.splits_no_pack<V>();
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void prefetch_pack(int, const Window&) const {}

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_inner_pack(int c) const {
      return load.template load<V>(r, start + c);
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
      return words_of(load_inner_pack<V>(c));
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_whole_pack(int c, const Window& window, value_type pad) const {
      if (c < window.end) return load_inner_pack<V>(c);
      Pack<value_type, V> pack;
      for (int v = 0; v < V; ++v) pack[v] = pad;
      return pack;
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_pack(int c, const Window& window, value_type pad) const {
      if (window.has_pack<V>(c)) return load.template load<V>(r, start + c);
      Pack<value_type, V> pack;
      for (int v = 0; v < V; ++v) pack[v] = c + v < window.end ? load.template load<1>(r, start + c + v)[0] : pad;
      return pack;
    }
  };

  struct Row {
    using value_type               = typename Load::value_type;
    static constexpr bool has_rims = false;

    const Load& load;
    std::int64_t r;

    template <int V>
    KOKKOS_INLINE_FUNCTION Stretch from(std::int64_t start) const {
      return {load, r, start};
    }
  };

  Load load;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {load, r}; }
};

/// A user's store functor as a sink of rows; it takes results in the accumulator type A.
template <class Store, class A>
struct FunctorSink {
  using value_type = A;

  struct Stretch {
    using value_type                   = A;
    static constexpr bool always_whole = false;

    const Store& sink;
    std::int64_t r;
    std::int64_t start;

    template <int V>
    KOKKOS_INLINE_FUNCTION bool moves_whole_tiles(const Window& window) const {
      return window.splits_no_pack<V>();
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void store_whole_pack(const Pack<A, V>& pack, int c) const {
      sink.template store<V>(pack, r, start + c);
    }

    template <int V>
    KOKKOS_INLINE_FUNCTION void store_pack(const Pack<A, V>& pack, int c, const Window& window) const {
      if (window.has_pack<V>(c)) {
        sink.template store<V>(pack, r, start + c);
        return;
      }
      for (int v = 0; v < V; ++v) {
        if (c + v < window.end) sink.template store<1>(Pack<A, 1>{{pack[v]}}, r, start + c + v);
      }
    }
  };

  struct Row {
    using value_type = A;

    const Store& sink;
    std::int64_t r;

    template <int V>
    KOKKOS_INLINE_FUNCTION Stretch from(std::int64_t start) const {
      return {sink, r, start};
    }
  };

  Store m_store;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {m_store, r}; }
  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const { m_store.store(value, row); }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_ROWS_HPP
