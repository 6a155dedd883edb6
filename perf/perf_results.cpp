// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace KokkosNN::Perf {
namespace {

/// The fields that name a shape, for shapes, records and failures alike.
void write_shape(std::ostream& out, const Case& shape) {
  out << "{\"sweep\": " << json(shape.sweep) << ", \"op\": " << json(shape.op_name())
      << ", \"type\": " << json(shape.type()) << ", \"layout\": " << json(to_string(shape.layout))
      << ", \"rows\": " << shape.rows << ", \"nominal_rows\": " << shape.nominal_rows << ", \"cols\": " << shape.cols;
}

void write_entry(std::ostream& out, const Case& shape) {
  write_shape(out, shape);
  out << "}";
}

void write_entry(std::ostream& out, const Record& record) {
  const Timing& timing = record.timing;
  write_shape(out, record.shape);
  out << ", \"provider\": " << json(record.provider) << ", \"plan\": " << json(record.plan)
      << ", \"bytes\": " << record.shape.bytes() << ", \"samples\": " << timing.samples
      << ", \"median_s\": " << timing.median << ", \"q1_s\": " << timing.q1 << ", \"q3_s\": " << timing.q3
      << ", \"min_s\": " << timing.min << ", \"max_s\": " << timing.max << "}";
}

void write_entry(std::ostream& out, const Failure& failure) {
  write_shape(out, failure.shape);
  out << ", \"provider\": " << json(failure.provider) << ", \"what\": " << json(failure.what) << "}";
}

template <class Entry>
void write_list(std::ostream& out, const std::vector<Entry>& entries) {
  out << "[";
  const char* separator = "\n";
  for (const Entry& entry : entries) {
    out << separator;
    write_entry(out, entry);
    separator = ",\n";
  }
  out << "\n]";
}

}  // namespace

std::string json(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string json(const Context& context) {
  std::string result    = "{";
  const char* separator = "\n";
  for (const auto& [key, value] : context) {
    result.append(separator).append("  ").append(json(key)).append(": ").append(json(value));
    separator = ",\n";
  }
  return result + "\n}";
}

std::string json(const std::vector<Case>& shapes) {
  std::ostringstream out;
  write_list(out, shapes);
  return out.str();
}

const Record* Results::find(const Case& shape, const std::string& provider) const {
  const auto found = std::ranges::find_if(
      records, [&](const Record& record) { return record.provider == provider && record.shape == shape; });
  return found == records.end() ? nullptr : &*found;
}

void write_json(const Results& results, const std::filesystem::path& file) {
  std::ofstream out(file);
  out << "{\n\"schema\": 1,\n\"context\": " << json(results.context) << ",\n\"records\": ";
  write_list(out, results.records);
  out << ",\n\"failures\": ";
  write_list(out, results.failures);
  out << "\n}\n";
  if (!out.flush()) throw std::runtime_error("kokkosnn_perf: cannot write " + file.string());
}

}  // namespace KokkosNN::Perf
