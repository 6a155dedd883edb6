// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/tuning.hpp>

#include <KokkosNN/version.hpp>

#include "tuning_entry.hpp"
#include "tuning_json.hpp"

#include <Kokkos_Core.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

namespace KokkosNN {
namespace {

/// The number counts up whenever older entries would no longer be what was measured: 2, as plans name their kernels.
constexpr const char* format = "KokkosNN tuning 2";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// True if there is something at a path that is to be a tuning file; a device, as /dev/null, is none. Throws where it
/// can't be one, or can't be looked at.
bool is_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::directory) throw std::runtime_error("it is a folder");
  if (status.type() == std::filesystem::file_type::none) throw std::runtime_error(error.message());
  return status.type() == std::filesystem::file_type::regular;
}

/// A tuning file's text as it is; throws where it is none.
Impl::Json parsed(std::string_view text) {
  Impl::Json file        = Impl::Json::parse(text);
  const std::string& its = file["format"].text();
  if (its != format) throw std::runtime_error("its format is '" + its + "', not '" + format + "'; run perf/tune");
  return file;
}

TuningTable table_of(const Impl::Json& tuning) {
  TuningTable table;
  for (const Impl::Json& entry : tuning["entries"].items()) table.entries.push_back(Impl::entry_of(entry));
  return table;
}

/// The tables of a tuning file's text that this version of the library has made, by their devices.
std::map<std::string, TuningTable> tables_of(std::string_view text) {
  std::map<std::string, TuningTable> tables;
  const Impl::Json file = parsed(text);
  for (const Impl::Json& tuning : file["tunings"].items()) {
    const std::string& device = tuning["device"].text();
    if (tuning["library"].text() == version()) tables.emplace(device, table_of(tuning));
  }
  return tables;
}

std::string warning_of(const std::string& path, const std::exception& error) {
  return "KokkosNN: the tuning file " + path + " is ignored: " + error.what();
}

void warn(const std::string& warning) {
  if (!warning.empty() && Kokkos::show_warnings()) std::cerr << warning << std::endl;
}

/// The tables that plans go by.
struct Tunings {
  std::mutex mutex;
  std::map<std::string, const TuningTable*, std::less<>> by_device;
  /// Also those that were replaced: plans are being made by them, and traits point to them.
  std::deque<TuningTable> all;
  bool come_from_file = true;

  /// For good: plans may be made later than statics are destroyed.
  static Tunings& get() {
    static Tunings& tunings = *new Tunings;
    return tunings;
  }

  const TuningTable* add(std::string_view device, TuningTable table) {
    const TuningTable* added              = table.entries.empty() ? nullptr : &all.emplace_back(std::move(table));
    return by_device[std::string(device)] = added;
  }

  void start_anew(bool from_file) {
    by_device.clear();
    come_from_file = from_file;
  }
};

/// Holds the lock of a file that several processes may write, for as long as it lives.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : m_file(::open((path + ".lock").c_str(), O_CREAT | O_RDWR, 0666)) {
    if (m_file < 0 || ::flock(m_file, LOCK_EX) != 0) throw std::runtime_error("KokkosNN: cannot lock " + path);
  }
  ~FileLock() { ::close(m_file); }
  FileLock(const FileLock&)            = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int m_file;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

const TuningEntry* TuningTable::find(const RowProblem& problem) const {
  const RowOperator op = problem.op == RowOperator::log_softmax ? RowOperator::softmax : problem.op;
  if (problem.x_col_stride != 1 || problem.y_col_stride != 1) return nullptr;
  const auto fits = [&](const TuningEntry& e) {
    return e.op == op && e.x_type == problem.x_type && e.y_type == problem.y_type && e.min_rows <= problem.rows &&
           e.min_cols <= problem.cols && problem.cols <= e.max_cols;
  };
  const auto found = std::find_if(entries.begin(), entries.end(), fits);
  return found == entries.end() ? nullptr : &*found;
}

std::string tuning_file() {
  if (const char* named = std::getenv("KOKKOSNN_TUNING_FILE")) return named;
  const std::string cache = variable("XDG_CACHE_HOME");
  const std::string home  = variable("HOME");
  if (!cache.empty()) return cache + "/KokkosNN/tuning.json";
  return home.empty() ? "" : home + "/.cache/KokkosNN/tuning.json";
}

TuningTable read_tuning(const std::string& path, std::string_view device, std::string& warning) {
  warning.clear();
  try {
    if (!is_file(path)) return {};
    const Impl::Json file = parsed(contents(path));
    bool is_old           = false;
    for (const Impl::Json& tuning : file["tunings"].items()) {
      if (tuning["device"].text() != device) continue;
      is_old = tuning["library"].text() != version();
      if (!is_old) return table_of(tuning);
    }
    if (is_old)
      throw std::runtime_error(std::string("it was made by another version than ") + version() + "; run perf/tune");
  } catch (const std::exception& error) {
    warning = warning_of(path, error);
  }
  return {};
}

void write_tuning(const std::string& path, std::string_view device, const TuningTable& table) {
  using Impl::Json;
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code no_matter;  // what can't be made can't be locked
  if (!folder.empty()) std::filesystem::create_directories(folder, no_matter);
  const FileLock lock(path);

  std::vector<Json> tunings;
  try {
    const Json file = parsed(contents(path));
    for (const Json& tuning : file["tunings"].items()) {
      const bool is_replaced = tuning["device"].text() == device && tuning["library"].text() == version();
      if (!is_replaced) tunings.push_back(tuning);
    }
  } catch (const std::exception&) {
    tunings.clear();  // none, or broken
  }
  std::vector<Json> entries;
  for (const TuningEntry& entry : table.entries) entries.push_back(Impl::json_of(entry));
  tunings.push_back(
      Json::object({{"device", Json(std::string(device))}, {"library", Json(version())}, {"entries", Json(entries)}}));

  // Readers see the old file or the new one, never a part.
  const std::string next = path + "." + std::to_string(::getpid());
  {
    std::ofstream file(next);
    file << Json::object({{"format", Json(format)}, {"tunings", Json(tunings)}}).text_of() << '\n';
    if (!file.flush()) throw std::runtime_error("KokkosNN: cannot write " + next);
  }
  std::filesystem::rename(next, path);
}

std::string tuning_text() {
  const std::string path = tuning_file();
  try {
    if (path.empty() || !is_file(path)) return "";
    std::string text = contents(path);
    tables_of(text);  // or it throws
    return text;
  } catch (const std::exception& error) {
    warn(warning_of(path, error));
    return "";
  }
}

void set_tuning(std::string_view text) {
  std::map<std::string, TuningTable> tables;
  try {
    if (!text.empty()) tables = tables_of(text);
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string("KokkosNN::set_tuning: the text is not that of a tuning file: ") +
                                error.what());
  }
  Tunings& tunings = Tunings::get();
  const std::lock_guard guard(tunings.mutex);
  tunings.start_anew(false);
  for (auto& [device, table] : tables) tunings.add(device, std::move(table));
}

void set_tuning(std::string_view device, const TuningTable& table) {
  Tunings& tunings = Tunings::get();
  const std::lock_guard guard(tunings.mutex);
  tunings.add(device, table);
}

void set_tuning_off() { set_tuning(""); }

void set_tuning_from_file() {
  Tunings& tunings = Tunings::get();
  const std::lock_guard guard(tunings.mutex);
  tunings.start_anew(true);
}

namespace Impl {

const TuningTable* loaded_tuning(std::string_view device) {
  Tunings& tunings = Tunings::get();
  const std::lock_guard guard(tunings.mutex);
  const auto found = tunings.by_device.find(device);
  if (found != tunings.by_device.end()) return found->second;
  if (!tunings.come_from_file) return nullptr;
  const std::string path = tuning_file();
  std::string warning;
  TuningTable table = path.empty() ? TuningTable{} : read_tuning(path, device, warning);
  warn(warning);
  return tunings.add(device, std::move(table));
}

const std::string& host_name() {
  static const std::string name = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      const std::size_t colon = line.find(": ");
      if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return std::string("host");
  }();
  return name;
}

}  // namespace Impl
}  // namespace KokkosNN
