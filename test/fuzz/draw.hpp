// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_FUZZ_DRAW_HPP
#define KOKKOSNN_TEST_FUZZ_DRAW_HPP

#include "../support/check.hpp"
#include "../support/inputs.hpp"
#include "../support/tensor.hpp"
#include "../support/types.hpp"

#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

// Extents, strides, options and values of a call, from random bytes.

namespace KokkosNNTest {

/// Numbers from the input's bytes; zeros behind its end.
class Draw {
 public:
  Draw(const std::uint8_t* data, std::size_t size) : m_data(data), m_size(size) {}

  std::uint8_t byte() { return m_next < m_size ? m_data[m_next++] : 0; }
  std::int64_t below(std::int64_t n) { return (byte() + 256 * (n > 256 ? byte() : 0)) % n; }
  bool yes() { return (byte() & 1) != 0; }
  template <class T, std::size_t n>
  T of(const T (&choices)[n]) {
    return choices[below(n)];
  }

  /// Extent of an axis: mostly short, sometimes beyond what a pack, a tile or a team holds, at most `room`.
  std::int64_t extent(std::int64_t& room) {
    const std::int64_t most = std::min<std::int64_t>(room, of({4, 4, 4, 40, 40, 40, 300, 1200}));
    const std::int64_t n    = below(most + 1);
    room /= std::max<std::int64_t>(1, n);
    return n;
  }

  std::vector<std::int64_t> extents(int rank) {
    std::int64_t room = of({200, 200, 200, 1200});
    std::vector<std::int64_t> result(rank);
    for (auto& n : result) n = extent(room);
    return result;
  }

  /// Axes in any order in memory, with gaps between them.
  Placement placement(std::vector<std::int64_t> extents) {
    Placement place{std::move(extents), {}, of({0, 0, 1, 3})};
    place.strides.assign(place.extents.size(), 0);
    std::vector<int> order(place.extents.size());
    for (int d = 0; d < place.rank(); ++d) order[d] = place.rank() - 1 - d;
    if (yes()) {
      for (int d = place.rank() - 1; d > 0; --d) std::swap(order[d], order[below(d + 1)]);
    }
    std::int64_t stride = 1;
    for (const int d : order) {
      place.strides[d] = stride;
      stride           = stride * std::max<std::int64_t>(1, place.extents[d]) + of({0, 0, 0, 1, 5});
    }
    return place;
  }

  double scale() { return of({1.0, 1.0, 0.125, -1.0, -0.37, 7.5, 1e-3, 1e3}); }
  MaskedRowPolicy masked_row() { return yes() ? MaskedRowPolicy::zero : MaskedRowPolicy::nan; }
  Recipe recipe() { return all_recipes[below(all_recipes.size())]; }

  /// A plan request: about half of the time it forces one of six strategies.
  KokkosNN::PlanRequest plan() {
    KokkosNN::PlanRequest request;
    if (yes()) return request;
    request.strategy =
        of({RowStrategy::automatic, RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
            RowStrategy::team_online, RowStrategy::split_row, RowStrategy::inner_lanes});
    request.packs_per_thread = of({0, 0, 0, 1, 2, 4, 8});
    request.team_size        = of({0, 0, 0, 1, 2, 64});
    return request;
  }

  Determinism determinism() { return yes() ? Determinism::batch_invariant : Determinism::run_to_run; }

 private:
  const std::uint8_t* m_data;
  std::size_t m_size;
  std::size_t m_next = 0;
};

/// Puts a few NaN, infinities, zeros and extreme numbers into a tensor, at times into a whole row. `headroom`: powers
/// of two between the largest of them and the end of T's range.
template <class T>
void add_specials(Draw& draw, T* data, const Placement& place, int axis, int headroom) {
  using A          = KokkosNN::accumulator_t<T>;
  const A infinity = std::numeric_limits<A>::infinity();
  const int digits = Format<T>::digits, min_exponent = Format<T>::min_exponent;
  const A smallest = std::ldexp(A(1), min_exponent - digits + 1);
  const A large    = std::ldexp(2 - std::ldexp(A(1), 1 - digits), 1 - min_exponent - headroom);
  if (place.count() == 0) return;
  for (std::int64_t n = draw.of({0, 0, 0, 1, 2, 5}); n > 0; --n) {
    const A value = draw.of(
        {std::numeric_limits<A>::quiet_NaN(), infinity, -infinity, -infinity, A(-0.0), smallest, large, -large});
    std::int64_t offset = place.origin;
    for (int d = 0; d < place.rank(); ++d) offset += place.strides[d] * draw.below(place.extents[d]);
    const bool whole_row = value == -infinity && draw.yes();
    if (!whole_row) {
      data[offset] = static_cast<T>(value);
      continue;
    }
    std::int64_t first = place.origin;
    for (int d = 0; d < place.rank(); ++d) {
      if (d != axis) first += place.strides[d] * draw.below(place.extents[d]);
    }
    for (std::int64_t i = 0; i < place.extents[axis]; ++i)
      data[first + i * place.strides[axis]] = static_cast<T>(value);
  }
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_FUZZ_DRAW_HPP
