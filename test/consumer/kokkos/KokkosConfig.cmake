# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# A package of Kokkos to ask about: version CONSUMER_KOKKOS, for CONSUMER_DEVICES (separated by commas), without any
# code.
string(REPLACE "," ";" Kokkos_DEVICES "${CONSUMER_DEVICES}")
add_library(Kokkos::kokkoscore INTERFACE IMPORTED)
add_library(Kokkos::kokkos INTERFACE IMPORTED)
