// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_COLUMN_SUMS_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_COLUMN_SUMS_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/column_sums.hpp>
#include <KokkosNN/impl/host/column_sums.hpp>
#include <KokkosNN/impl/inputs/column_terms.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// The launches of sums over rows, for any formula of terms.

namespace KokkosNN::Impl {

/// Chunks of rows: so many that their sums are a small part of what is read, and at most as many as one team joins. The
/// same on every machine, as the order of the sums follows from it.
inline constexpr std::int64_t rows_of_chunk = 256;
inline constexpr std::int64_t most_chunks   = 1024;

inline std::int64_t column_sum_chunks(std::int64_t rows) {
  return std::clamp<std::int64_t>((rows + rows_of_chunk - 1) / rows_of_chunk, 1, most_chunks);
}

/// Packs of a chunk side by side: as many as there are, up to a team's.
inline int column_sum_lanes(std::int64_t cols, int pack) {
  int lanes = 1;
  while (lanes < ColumnSumShape::column_lanes && std::int64_t(lanes) * pack < cols) lanes *= 2;
  return lanes;
}

/// Launches the sums of one source's rows.
template <int V, class ExecutionSpace, class Source, class Output>
void launch_sums(const ExecutionSpace& exec, const std::string& label, const Source& source, const Output& output,
                 std::int64_t rows, std::int64_t cols, std::int64_t chunks, bool rows_fastest) {
  const auto capped = [](std::int64_t units) { return std::min<std::int64_t>(units, INT_MAX); };
  if constexpr (backend_of<ExecutionSpace>() == Backend::host) {
    const std::int64_t tiles = (cols + HostColumnSumShape::tile - 1) / HostColumnSumShape::tile;
    launch<Kokkos::LaunchBounds<1, 1>>(
        exec, label, {capped(chunks * tiles), 1, 0, 0},
        HostSumColumns<Source, Output>{source, output, rows, cols, chunks, rows_fastest});
  } else {
    using Kernel             = SumColumns<V, Source, Output>;
    using Shape              = ColumnSumShape;
    constexpr int resides    = backend_of<ExecutionSpace>() == Backend::hip ? least_residency(Backend::hip) : 2;
    const int lanes          = column_sum_lanes(cols, V);
    const int groups         = Shape::column_lanes / lanes;
    const std::int64_t tiles = (cols + std::int64_t(lanes) * V - 1) / (std::int64_t(lanes) * V);
    const std::int64_t units = (chunks + groups - 1) / groups * tiles;
    launch<Kokkos::LaunchBounds<Shape::threads, resides>>(
        exec, label, {capped(units), Shape::threads, 0, std::size_t(Kernel::scratch_bytes)},
        Kernel{source, output, rows, cols, chunks, lanes, rows_fastest});
  }
}

/// Sums over the rows of a layout by a formula: `inputs` and `values` are the numbers of its tensors.
template <class Formula, class T, class ExecutionSpace>
struct ColumnSumsOf {
  using A       = accumulator_t<T>;
  using Source  = TermRows<Formula, T, A>;
  using Results = ColumnResults<T, A, Formula::sums>;
  using W       = typename Source::W;

  /// Elements of 16 bytes, and of the chunks' sums. On HIP at most 4: the sums of 8 columns would be spilled.
  static constexpr int most    = backend_of<ExecutionSpace>() == Backend::hip ? 4 : 8;
  static constexpr int V       = std::min(most, 16 / static_cast<int>(sizeof(T)));
  static constexpr int parts_V = 16 / static_cast<int>(sizeof(W));

  const ExecutionSpace& exec;
  std::string name;  ///< of the public function
  const RowsLayout& layout;
  const Tensors& tensors;

  /// Enqueues the sums of tensors `inputs`, with values `values` a row, to tensors `results`; those may be missing.
  void run(const int (&inputs)[Formula::inputs], const int* values, const int (&results)[Formula::sums]) const {
    const std::int64_t chunks = column_sum_chunks(layout.rows);
    const std::int64_t parts  = chunks > 1 ? chunks * Formula::sums * layout.cols : 0;
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(exec, std::size_t(parts) * sizeof(W));

    Results to = results_of(results);
    to.parts   = reinterpret_cast<W*>(workspace.data());
    if (chunks == 1) to.parts = nullptr;
    launch_sums<V>(exec, "KokkosNN::" + name + "[columns]", source_of(inputs, values), to, layout.rows, layout.cols,
                   chunks, has_rows_fastest(inputs[0]));
    if (chunks == 1) return;
    const std::int64_t width = Formula::sums * layout.cols;
    const PartRows<W> of_chunks{to.parts, width};
    to.parts = nullptr;
    launch_sums<parts_V>(exec, "KokkosNN::" + name + "[chunks]", of_chunks, JoinedResults<Results>{to}, chunks, width,
                         1, false);
  }

 private:
  Source source_of(const int (&inputs)[Formula::inputs], const int* values) const {
    Source source{};
    for (int i = 0; i < Formula::inputs; ++i) {
      source.data[i]       = static_cast<const T*>(tensors[inputs[i]].data);
      source.col_stride[i] = layout.col_stride[inputs[i]];
      source.map[i]        = layout.map(inputs[i]);
    }
    for (int i = 0; i < Formula::row_values; ++i) {
      source.value[i]     = static_cast<const A*>(tensors[values[i]].data);
      source.value_map[i] = layout.map(values[i]);
    }
    return source;
  }

  Results results_of(const int (&results)[Formula::sums]) const {
    Results to{};
    to.cols = layout.cols;
    for (int i = 0; i < Formula::sums; ++i) {
      const Tensor& tensor = tensors[results[i]];
      if (!tensor.exists()) continue;
      to.result[i] = {const_cast<void*>(tensor.data), tensor.element_bytes == sizeof(A), layout.col_stride[results[i]]};
    }
    return to;
  }

  /// Rows are closer together than columns.
  bool has_rows_fastest(int input) const {
    return layout.n > 0 && std::llabs(layout.inner_stride(input)) < std::llabs(layout.col_stride[input]);
  }
};

template <class ExecutionSpace, class T>
struct Launcher<ColumnSumsCall<ExecutionSpace, T>> {
  static void run(const ExecutionSpace& exec, const RowsLayout& layout, const Tensors& tensors) {
    using Is = ColumnSumsTensors;
    ColumnSumsOf<ElementTerms, T, ExecutionSpace>{exec, "column_sums", layout, tensors}.run({Is::x}, nullptr, {Is::y});
  }
};

template <class ExecutionSpace, class T>
void ColumnSumsCall<ExecutionSpace, T>::run(const ExecutionSpace& exec, const RowsLayout& layout,
                                            const Tensors& tensors) {
  run_compiled<ColumnSumsCall>(exec, layout, tensors);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_COLUMN_SUMS_LAUNCH_HPP
