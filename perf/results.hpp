// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Results of a run: results.json, which report.py turns into CSV, table and plots.
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

/// Text as a JSON string, quotes and all.
std::string json(const std::string& text);
/// The facts as a JSON object.
std::string json(const Context& context);
/// Shapes as a JSON array, one object a line; its fields are those that a record of results.json names its shape by.
std::string json(const std::vector<Case>& shapes);

/// Writes the file anew; an interrupted run keeps what the call before wrote.
void write_json(const Results& results, const std::filesystem::path& file);

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_RESULTS_HPP
