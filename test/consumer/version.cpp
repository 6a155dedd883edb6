// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/version.hpp>

#include <cstring>

int main() { return std::strcmp(KokkosNN::version(), KOKKOSNN_VERSION_STRING); }
