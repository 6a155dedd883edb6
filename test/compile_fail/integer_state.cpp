// expect: KokkosNN::MaxSumExp: T must be float or double
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

KokkosNN::MaxSumExp<int> wrong;
