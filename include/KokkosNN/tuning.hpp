// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TUNING_HPP
#define KOKKOSNN_TUNING_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Plans that were measured on the device at hand. `perf/tune` writes them into a file; the planner takes, in this
// order, what the caller forces, the file, and the table that the library ships.
//
// The file is the one that KOKKOSNN_TUNING_FILE names (empty: none), else tuning.json in the folder KokkosNN of
// XDG_CACHE_HOME, else of ~/.cache. It is read once a process, when the first plan is made.

namespace KokkosNN {

/// What was best for rows of some lengths. Softmax stands for log-softmax too.
struct TuningEntry {
  RowOperator op        = RowOperator::softmax;
  ElementType x_type    = ElementType::f32;
  ElementType y_type    = ElementType::f32;
  std::int64_t min_rows = 1;  ///< it was measured on many rows, and says nothing of fewer
  std::int64_t min_cols = 1;
  std::int64_t max_cols = 1;
  PlanRequest plan      = {};

  bool operator==(const TuningEntry&) const = default;
};

/// The entries of one device. Where two are for the same rows, the first one counts.
struct TuningTable {
  std::vector<TuningEntry> entries;

  /// The entry for a problem, or none. Only for rows that are contiguous along the reduced axis.
  KOKKOSNN_EXPORT const TuningEntry* find(const RowProblem& problem) const;

  bool operator==(const TuningTable&) const = default;
};

/// The path of the tuning file as the environment has it; empty where there can't be one.
KOKKOSNN_EXPORT std::string tuning_file();

/// Reads a device's table.
///
/// \param path     the file
/// \param device   the device's name, as `device_name(exec)` gives it
/// \param warning  why the file is ignored: broken, not a tuning file, or made for this device by another version of
/// the
///                 library; empty where nothing is wrong, as when there is no such file or device
/// \return the table; empty where the file is ignored
KOKKOSNN_EXPORT TuningTable read_tuning(const std::string& path, std::string_view device, std::string& warning);

/// Puts a device's table into a file, in place of one that the same version of the library has made for it. Other
/// devices' tables stay, also those that other processes write at the same time. A file that can't be read is replaced.
///
/// \throws std::runtime_error with the path where it can't be written
KOKKOSNN_EXPORT void write_tuning(const std::string& path, std::string_view device, const TuningTable& table);

namespace Impl {

/// The table for a device in the tuning file, or null; read once, with at most one warning on stderr unless Kokkos'
/// warnings are off.
KOKKOSNN_EXPORT const TuningTable* loaded_tuning(std::string_view device);

/// The host's CPU by its name.
KOKKOSNN_EXPORT const std::string& host_name();

}  // namespace Impl
}  // namespace KokkosNN

#endif  // KOKKOSNN_TUNING_HPP
