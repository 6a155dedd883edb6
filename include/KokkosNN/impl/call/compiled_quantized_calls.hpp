// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COMPILED_QUANTIZED_CALLS_HPP
#define KOKKOSNN_IMPL_CALL_COMPILED_QUANTIZED_CALLS_HPP

#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/vocabulary.hpp>

// Calls whose results are quantised, without their kernels, as compiled_calls.hpp has the others.

namespace KokkosNN::Impl {

/// A checked call.
template <class Options>
struct QuantizedArguments {
  const char* function;
  const RowsLayout& layout;
  const Tensors& tensors;  ///< in the order of QuantizedTensors
  const Options& options;
  bool is_float8;  ///< y holds float8, else int8
};

/// softmax, rms_norm or layer_norm of rows of X, whose results are quantised.
template <class ExecutionSpace, RowOperator op, class X>
struct QuantizedCall {
  using Options   = typename OptionsOf<op>::type;
  using Arguments = QuantizedArguments<Options>;

  static void run(const ExecutionSpace& exec, const Arguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COMPILED_QUANTIZED_CALLS_HPP
