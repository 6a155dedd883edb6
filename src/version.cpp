// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/version.hpp>

namespace KokkosNN {

const char* version() { return KOKKOSNN_VERSION_STRING; }

}  // namespace KokkosNN
