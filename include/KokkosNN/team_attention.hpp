// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEAM_ATTENTION_HPP
#define KOKKOSNN_TEAM_ATTENTION_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/team.hpp>
#include <KokkosNN/team_matmul.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Attention of one head inside a user's own TeamPolicy kernel.

namespace KokkosNN {

/// Options of team_attention, not checked.
struct TeamAttentionOptions {
  double scale               = 0;      ///< factor of q k^T; 0: 1 / sqrt(dim)
  bool is_causal             = false;  ///< query i sees keys j <= i + offset alone
  std::int64_t offset        = 0;
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;  ///< weights of a query that sees no key
};

/// o = softmax(scale q k^T) v of one head, or of a tile of its queries, inside a kernel, by a whole team; all its
/// threads call.
///
/// \param member   the team
/// \param q        queries (query, dim) of double, float, half_t or bhalf_t
/// \param k        keys (key, dim)
/// \param v        values (key, value dim)
/// \param scores   memory for (query, key), best of double for double, else of float, in team scratch; the weights are
///                 in it afterwards
/// \param o        output (query, value dim)
/// \param options  scale, causal mask, masked rows
/// \param lse      output (query): log of the sum of exponentials of a query's scores; or no_view
///
/// Views      of rank 2 as of team_matmul. o and scores must overlap no other.
/// Ordering   team barriers ahead and behind, as of team_matmul.
/// Arithmetic in the type of scores for weights, products as of team_matmul: the scores are rounded to that type.
/// Values     NaN and infinities as team_softmax and team_matmul have them. Scores that the mask rules out are replaced
///            by -inf, whatever they are, but v is multiplied by their weights of 0: NaN and infinities there make o
///            NaN.
/// Cost       two products of team_matmul, and the scores read three times (with lse five) and written twice. All keys
///            are computed, also those that the mask rules out. `attention` needs no memory for scores.
template <Concepts::TeamMember Member, class QMatrix, class KMatrix, class VMatrix, class SMatrix, class OMatrix,
          class LseVector = NoView>
KOKKOS_FUNCTION void team_attention(const Member& member, const QMatrix& q, const KMatrix& k, const VMatrix& v,
                                    const SMatrix& scores, const OMatrix& o, const TeamAttentionOptions& options = {},
                                    const LseVector& lse = {}) {
  using S            = typename SMatrix::non_const_value_type;
  const auto queries = static_cast<std::int64_t>(scores.extent(0)), keys = static_cast<std::int64_t>(scores.extent(1));
  const double scale = options.scale != 0
                           ? options.scale
                           : 1 / Kokkos::sqrt(static_cast<double>(static_cast<std::int64_t>(q.extent(1))));
  using A            = Impl::product_accumulator_t<QMatrix, KMatrix, SMatrix>;
  team_matmul(member, static_cast<A>(scale), q, Impl::FlippedMatrix<KMatrix>{k}, A(0), scores);
  if (options.is_causal) {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, queries * keys), [&](std::int64_t n) {
      const std::int64_t query = n / keys, key = n % keys;
      if (key > query + options.offset) scores(query, key) = static_cast<S>(-Kokkos::Experimental::infinity_v<float>);
    });
    member.team_barrier();
  }
  Kokkos::parallel_for(Kokkos::TeamThreadRange(member, queries), [&](std::int64_t query) {
    const auto row = Kokkos::subview(scores, query, Kokkos::ALL);
    if constexpr (Impl::is_given<LseVector>) {
      const auto value = thread_logsumexp(member, row);
      Kokkos::single(Kokkos::PerThread(member),
                     [&] { lse(query) = static_cast<typename LseVector::non_const_value_type>(value); });
    }
    thread_softmax(member, row, row, {.masked_row = options.masked_row});
  });
  using B = Impl::product_accumulator_t<SMatrix, VMatrix, OMatrix>;
  team_matmul(member, B(1), scores, v, B(0), o);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_TEAM_ATTENTION_HPP
