// expect: KokkosNN: the library has no kernels for these element types on this execution space
// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/compiled_calls.hpp>

// As a call of other types is where kernels.hpp is not included.
struct CallWithoutKernels;

void wrong() { KokkosNN::Impl::require_kernels<CallWithoutKernels>(); }
