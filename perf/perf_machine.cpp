// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/version.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace KokkosNN::Perf {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// The value of the first line of a /proc file that starts with `key`.
[[maybe_unused]] std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(": \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::int64_t free_memory() {
#if defined(KOKKOS_ENABLE_CUDA)
  std::size_t free = 0, total = 0;
  Native::check(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
#elif defined(KOKKOS_ENABLE_HIP)
  std::size_t free = 0, total = 0;
  Native::check(hipMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
#else
  const std::int64_t kibibytes = std::atoll(proc_value("/proc/meminfo", "MemAvailable").c_str());
  return kibibytes > 0 ? 1024 * kibibytes : 1024 * mebibyte;
#endif
}

/// First line of what a shell command prints; empty where it fails.
std::string output_of(const std::string& command) {
  const auto close = [](std::FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  std::array<char, 256> line{};
  if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return {};
  const std::string text = line.data();
  return text.substr(0, text.find('\n'));
}

/// The commit of the sources, asked when measuring: a hash from configure time would be stale after the next commit.
std::string git_hash() {
  const std::string folder = std::filesystem::path(__FILE__).parent_path().string();
  if (folder.empty() || folder.find('\'') != std::string::npos) return "unknown";
  const std::string hash = output_of("git -C '" + folder + "' describe --always --dirty --abbrev=12 2>/dev/null");
  return hash.empty() ? "unknown" : hash;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "not set";
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

std::string kokkos_version() {
  const auto number = [](int value) { return std::to_string(value); };
  return number(KOKKOS_VERSION / 10000) + '.' + number(KOKKOS_VERSION / 100 % 100) + '.' + number(KOKKOS_VERSION % 100);
}

std::string kokkos_configuration() {
  std::ostringstream text;
  Kokkos::print_configuration(text);
  return text.str();
}

}  // namespace

Context machine_context(const Exec& exec) {
  Context context;
  context.emplace_back("device", device_name(exec));
  context.emplace_back("backend", Exec::name());
  context.emplace_back("concurrency", std::to_string(exec.concurrency()));
  context.emplace_back("date", now_utc());
  context.emplace_back("git", git_hash());
  context.emplace_back("KokkosNN", KokkosNN::version());
  context.emplace_back("Kokkos", kokkos_version());
  context.emplace_back("compiler", compiler());
  context.emplace_back("timer", on_gpu ? "events, 256 MiB written before each call" : "fenced clock, caches as left");
  if (!on_gpu)
    for (const char* name : {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES"})
      context.emplace_back(name, environment(name));
  context.emplace_back("kokkos_configuration", kokkos_configuration());
  return context;
}

std::int64_t traffic_limit(const Exec& exec, bool full) {
  // A host: 64 MiB a thread is beyond its share of any cache, and a pass over it takes milliseconds.
  const std::int64_t by_threads = std::clamp(64 * mebibyte * exec.concurrency(), 128 * mebibyte, 4096 * mebibyte);
  const std::int64_t by_device  = (full ? 8192 : 2048) * mebibyte;
  // x and y, the copy's two buffers, and as much again for everyone else on the machine
  return std::min(on_gpu ? by_device : by_threads, free_memory() / 4);
}

}  // namespace KokkosNN::Perf
