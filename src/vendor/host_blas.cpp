// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#include <cstdint>

// A host's BLAS, by its Fortran interface with 32-bit integers.

namespace KokkosNN::Impl {

#if defined(KOKKOSNN_HAS_HOST_BLAS)

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*);
}

namespace {

template <class T, class Gemm>
void run(const Gemm& gemm, const BlasProduct& p, const MatmulOptions& options, const MatmulLayout& layout) {
  const T alpha = static_cast<T>(options.alpha), beta = static_cast<T>(options.beta);
  const char of_a = p.a.is_transposed ? 'T' : 'N', of_b = p.b.is_transposed ? 'T' : 'N';
  const auto at = [&](int number, std::int64_t batch) {
    return static_cast<const T*>(layout.data[number]) + layout.map(number)(batch);
  };
  for (std::int64_t n = 0; n < layout.batches; ++n) {
    gemm(&of_b, &of_a, &p.cols, &p.rows, &p.inner, &alpha, at(MatmulTensors::b, n), &p.b.leading_dimension,
         at(MatmulTensors::a, n), &p.a.leading_dimension, &beta, const_cast<T*>(at(MatmulTensors::c, n)),
         &p.c.leading_dimension);
  }
}

}  // namespace

bool has_host_blas() { return true; }

void run_host_blas(const BlasProduct& product, ElementType type, const MatmulOptions& options,
                   const MatmulLayout& layout) {
  if (type == ElementType::f64) return run<double>(dgemm_, product, options, layout);
  run<float>(sgemm_, product, options, layout);
}

#else

bool has_host_blas() { return false; }
void run_host_blas(const BlasProduct&, ElementType, const MatmulOptions&, const MatmulLayout&) {}

#endif

}  // namespace KokkosNN::Impl
