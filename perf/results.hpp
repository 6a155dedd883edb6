// SPDX-License-Identifier: Apache-2.0
/// What a run leaves behind: results.json, which report.py turns into CSV, table and plots.
#ifndef KOKKOSNN_PERF_RESULTS_HPP
#define KOKKOSNN_PERF_RESULTS_HPP

#include "machine.hpp"
#include "shapes.hpp"
#include "timing.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace KokkosNN::Perf {

struct Record {
  Case shape;
  std::string provider;
  std::string plan;
  Timing timing;

  double gigabytes_per_second() const { return 1e-9 * static_cast<double>(shape.bytes()) / timing.median; }
};

/// A provider whose result was wrong or that threw; it has no record.
struct Failure {
  Case shape;
  std::string provider;
  std::string what;
};

struct Results {
  Context context;
  std::vector<Record> records;
  std::vector<Failure> failures;

  /// The provider's record of this shape, or nullptr.
  const Record* find(const Case& shape, const std::string& provider) const;
};

/// Writes the file anew; an interrupted run keeps what the call before wrote.
void write_json(const Results& results, const std::filesystem::path& file);

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_RESULTS_HPP
