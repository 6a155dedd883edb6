// expect: KokkosNN::MaxSumExp: T must be float or double
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

KokkosNN::MaxSumExp<int> wrong;
