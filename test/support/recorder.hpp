// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_RECORDER_HPP
#define KOKKOSNN_TEST_SUPPORT_RECORDER_HPP

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace KokkosNNTest {

/// Listens to Kokkos Tools while it lives: which kernels, regions, allocations, copies and fences there were. One at a
/// time.
class Recorder {
 public:
  struct Event {
    std::string label;
    std::uint32_t device = 0;  ///< as Kokkos::Tools::Experimental::device_id(instance)
  };

  Recorder() : m_previous(Kokkos::Tools::Experimental::get_callbacks()) {
    namespace Tools = Kokkos::Tools::Experimental;
    s_active        = this;
    Tools::set_begin_parallel_for_callback(&Recorder::kernel);
    Tools::set_begin_parallel_reduce_callback(&Recorder::kernel);
    Tools::set_begin_parallel_scan_callback(&Recorder::kernel);
    Tools::set_begin_fence_callback(&Recorder::fence);
    Tools::set_push_region_callback(&Recorder::region);
    Tools::set_allocate_data_callback(&Recorder::allocation);
    Tools::set_deallocate_data_callback(&Recorder::deallocation);
    Tools::set_begin_deep_copy_callback(&Recorder::deep_copy);
  }

  ~Recorder() {
    Kokkos::Tools::Experimental::set_callbacks(m_previous);
    s_active = nullptr;
  }

  Recorder(const Recorder&)            = delete;
  Recorder& operator=(const Recorder&) = delete;

  std::vector<Event> kernels;
  std::vector<Event> fences;
  std::vector<std::string> regions;
  std::vector<std::string> allocations;
  std::vector<std::string> deallocations;
  std::vector<std::string> deep_copies;

  std::vector<std::string> kernel_labels() const {
    std::vector<std::string> labels;
    for (const Event& event : kernels) labels.push_back(event.label);
    return labels;
  }

  /// True if the call neither fenced nor allocated, as in a steady state; the message names what it did.
  ::testing::AssertionResult neither_fenced_nor_allocated() const {
    std::string seen;
    for (const Event& event : fences) seen += "fence: " + event.label + "; ";
    for (const std::string& label : allocations) seen += "allocation: " + label + "; ";
    for (const std::string& label : deallocations) seen += "deallocation: " + label + "; ";
    return seen.empty() ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << seen;
  }

 private:
  static void kernel(const char* label, std::uint32_t device, std::uint64_t*) {
    s_active->kernels.push_back({label, device});
  }
  static void fence(const char* label, std::uint32_t device, std::uint64_t*) {
    // Kokkos' own: around the events that a tool listens to, and in every kernel of the backend Threads.
    const std::string name = label;
    for (const char* own : {"Kokkos Profile Tool Fence", "Kokkos::ThreadsInternal::fence"}) {
      if (name.find(own) != std::string::npos) return;
    }
    s_active->fences.push_back({name, device});
  }
  static void region(const char* label) { s_active->regions.emplace_back(label); }
  // Kokkos announces an allocation of no bytes for every team kernel on a GPU.
  static void allocation(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
    if (bytes > 0) s_active->allocations.emplace_back(label);
  }
  static void deallocation(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
    if (bytes > 0) s_active->deallocations.emplace_back(label);
  }
  static void deep_copy(Kokkos::Tools::SpaceHandle, const char* to, const void*, Kokkos::Tools::SpaceHandle,
                        const char* from, const void*, std::uint64_t) {
    s_active->deep_copies.push_back(std::string(from) + " -> " + to);
  }

  static inline Recorder* s_active = nullptr;
  Kokkos::Tools::Experimental::EventSet m_previous;
};

/// The labels of the kernels that `f` launches.
template <class F>
std::vector<std::string> kernels_of(F&& f) {
  Recorder recorder;
  f();
  return recorder.kernel_labels();
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_RECORDER_HPP
