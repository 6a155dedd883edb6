// expect: RowLoad
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

// A Load that cannot load.
struct Load {
  using value_type = float;
};

struct Store {
  using value_type = float;
  template <int N>
  KOKKOS_FUNCTION void store(const KokkosNN::Pack<float, N>&, std::int64_t, std::int64_t) const {}
};

void wrong() { KokkosNN::fused_softmax(Kokkos::DefaultExecutionSpace(), 2, 3, Load{}, Store{}); }
