// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <stdexcept>

namespace KokkosNN::Perf {
namespace {

std::string quoted(const std::string& text) {
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

/// The fields that name a shape, for records and failures alike.
void write_shape(std::ostream& out, const Case& shape, const std::string& provider) {
  out << "{\"sweep\": " << quoted(shape.sweep) << ", \"op\": " << quoted(KokkosNN::to_string(shape.op))
      << ", \"type\": " << quoted(shape.type()) << ", \"layout\": " << quoted(to_string(shape.layout))
      << ", \"rows\": " << shape.rows << ", \"nominal_rows\": " << shape.nominal_rows << ", \"cols\": " << shape.cols
      << ", \"provider\": " << quoted(provider);
}

void write_entry(std::ostream& out, const Record& record) {
  const Timing& timing = record.timing;
  write_shape(out, record.shape, record.provider);
  out << ", \"plan\": " << quoted(record.plan) << ", \"bytes\": " << record.shape.bytes()
      << ", \"samples\": " << timing.samples << ", \"median_s\": " << timing.median << ", \"q1_s\": " << timing.q1
      << ", \"q3_s\": " << timing.q3 << ", \"min_s\": " << timing.min << ", \"max_s\": " << timing.max << "}";
}

void write_entry(std::ostream& out, const Failure& failure) {
  write_shape(out, failure.shape, failure.provider);
  out << ", \"what\": " << quoted(failure.what) << "}";
}

template <class Entry>
void write_list(std::ostream& out, const char* name, const std::vector<Entry>& entries) {
  out << ",\n\"" << name << "\": [";
  const char* separator = "\n";
  for (const Entry& entry : entries) {
    out << separator;
    write_entry(out, entry);
    separator = ",\n";
  }
  out << "\n]";
}

}  // namespace

const Record* Results::find(const Case& shape, const std::string& provider) const {
  const auto found = std::ranges::find_if(
      records, [&](const Record& record) { return record.provider == provider && record.shape == shape; });
  return found == records.end() ? nullptr : &*found;
}

void write_json(const Results& results, const std::filesystem::path& file) {
  std::ofstream out(file);
  out << "{\n\"schema\": 1,\n\"context\": {";
  const char* separator = "\n";
  for (const auto& [key, value] : results.context) {
    out << separator << "  " << quoted(key) << ": " << quoted(value);
    separator = ",\n";
  }
  out << "\n}";
  write_list(out, "records", results.records);
  write_list(out, "failures", results.failures);
  out << "\n}\n";
  if (!out.flush()) throw std::runtime_error("kokkosnn_perf: cannot write " + file.string());
}

}  // namespace KokkosNN::Perf
