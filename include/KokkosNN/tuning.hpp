// SPDX-FileCopyrightText: 2026 The KokkosNN authors
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
// XDG_CACHE_HOME, else of ~/.cache. A file of an older format, or what another version of the library has made, is
// ignored with a warning. It is read once a process, when the first plan is made. A program may say otherwise
// by set_tuning and set_tuning_off: with many processes one reads the file, and all are sure to make the same plans:
//
//     std::string text = rank == 0 ? KokkosNN::tuning_text() : "";
//     broadcast(text);  // MPI_Bcast of its size, then of its characters
//     KokkosNN::set_tuning(text);

namespace KokkosNN {

/// Fastest plan that was measured for rows of some lengths. Softmax stands for log-softmax too.
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
/// \param warning  why the file is ignored: broken, a folder, not a tuning file, or made for this device by another
///                 version of the library; empty where nothing is wrong, as when there is no such file or device
/// \return the table; empty where the file is ignored
KOKKOSNN_EXPORT TuningTable read_tuning(const std::string& path, std::string_view device, std::string& warning);

/// Puts a device's table into a file, in place of one that the same version of the library has made for it. Other
/// devices' tables stay, also those that other processes write at the same time. A file that can't be read is replaced.
///
/// \throws std::runtime_error with the path where it can't be written
KOKKOSNN_EXPORT void write_tuning(const std::string& path, std::string_view device, const TuningTable& table);

/// The text of the tuning file that the environment has, for set_tuning in this and in other processes; empty where
/// there is none. A file that is no good counts as none, with a warning on stderr unless Kokkos' warnings are off.
KOKKOSNN_EXPORT std::string tuning_text();

/// Tables in place of those of the tuning file, for all devices: plans that are made from now on, by any thread, go by
/// them. Calls and plans that exist stay as they are. Several threads may call it, and make plans meanwhile.
///
/// \param text  that of a tuning file; what another version of the library has made is left out. Empty: no tables
/// \throws std::invalid_argument where it is broken; the tables stay what they were then
KOKKOSNN_EXPORT void set_tuning(std::string_view text);

/// A table in place of that of the tuning file, for one device; an empty one: none. Otherwise the same.
///
/// \param device  its name, as `device_name(exec)` gives it
KOKKOSNN_EXPORT void set_tuning(std::string_view device, const TuningTable& table);

/// No tables, whatever file there is: plans are those that the library ships.
KOKKOSNN_EXPORT void set_tuning_off();

/// The tuning file again, read anew, after set_tuning and set_tuning_off.
KOKKOSNN_EXPORT void set_tuning_from_file();

namespace Impl {

/// The table for a device that was set, or that is in the tuning file, or null. The file is read once, with at most one
/// warning on stderr unless Kokkos' warnings are off. Tables live as long as the process.
KOKKOSNN_EXPORT const TuningTable* loaded_tuning(std::string_view device);

/// The host's CPU by its name.
KOKKOSNN_EXPORT const std::string& host_name();

}  // namespace Impl
}  // namespace KokkosNN

#endif  // KOKKOSNN_TUNING_HPP
