// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_MATMUL_LABEL_HPP
#define KOKKOSNN_SRC_PLAN_MATMUL_LABEL_HPP

#include <KokkosNN/impl/call/matmul_plan.hpp>

#include <string>

namespace KokkosNN::Impl {

/// `KokkosNN::matmul[nn,f32,tf32x3,128x64,c11,ts128]`, c what is copied asynchronously; by Hopper's warpgroups
/// `KokkosNN::matmul[warpgroups,nn,bf16,128x256,ts288]`; on a host `KokkosNN::matmul[host,f32,192x384,p4,t8]`, p the
/// parts of the summed axis, if it has several, t the threads.
std::string matmul_label(const char* function, ElementType type, Precision precision, MatmulRows kind,
                         const MatmulPlan& plan, bool is_on_host);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_MATMUL_LABEL_HPP
