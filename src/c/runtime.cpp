// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include "../argument_error.hpp"

#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/version.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNN::C {
namespace {

using Impl::ArgumentError;

constexpr Backend backend = Impl::backend_of<Exec>();

constexpr kokkosnn_device_kind own_kind = backend == Backend::cuda  ? KOKKOSNN_DEVICE_CUDA
                                          : backend == Backend::hip ? KOKKOSNN_DEVICE_HIP
                                                                    : KOKKOSNN_DEVICE_HOST;

/// The calling thread's device.
int current_device() {
  int device = 0;
#if defined(KOKKOS_ENABLE_CUDA)
  if (cudaGetDevice(&device) != cudaSuccess) throw std::runtime_error("KokkosNN: there is no CUDA device");
#elif defined(KOKKOS_ENABLE_HIP)
  if (hipGetDevice(&device) != hipSuccess) throw std::runtime_error("KokkosNN: there is no HIP device");
#endif
  return device;
}

void set_current_device([[maybe_unused]] int device) {
#if defined(KOKKOS_ENABLE_CUDA)
  static_cast<void>(cudaSetDevice(device));
#elif defined(KOKKOS_ENABLE_HIP)
  static_cast<void>(hipSetDevice(device));
#endif
}

/// The device that Kokkos runs on; a host is number 0.
int kokkos_device() { return backend == Backend::host ? 0 : Kokkos::device_id(); }

Exec new_instance([[maybe_unused]] void* stream) {
#if defined(KOKKOS_ENABLE_CUDA)
  return Exec(static_cast<cudaStream_t>(stream));
#elif defined(KOKKOS_ENABLE_HIP)
  return Exec(static_cast<hipStream_t>(stream));
#else
  return Exec();
#endif
}

/// True if what is enqueued on a stream becomes part of a graph.
bool is_captured([[maybe_unused]] void* stream) {
#if defined(KOKKOS_ENABLE_CUDA)
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
#elif defined(KOKKOS_ENABLE_HIP)
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return hipStreamIsCapturing(static_cast<hipStream_t>(stream), &status) == hipSuccess &&
         status != hipStreamCaptureStatusNone;
#else
  return false;
#endif
}

/// Kokkos as this library uses it. Lives for good: calls may come as late as the process' own exit handlers.
class Process {
 public:
  static Process& get() {
    static Process& process = *new Process;
    return process;
  }

  Exec instance(const char* function, int device, void* stream) {
    const std::lock_guard lock(m_mutex);
    start(function, device);
    const auto known = find(stream);
    if (known != m_instances.end()) return known->second;
    if (is_captured(stream)) {  // an instance allocates and waits
      (ArgumentError(function) << "a stream must have had a call before a graph is captured on it, but stream is "
                               << stream << ", which is new")
          .raise();
    }
    set_current_device(kokkos_device());  // a new thread has no context, and Kokkos asks the stream for its own
    return m_instances.emplace_back(stream, new_instance(stream)).second;
  }

  void release(void* stream) {
    const std::lock_guard lock(m_mutex);
    const auto known = find(stream);
    if (known != m_instances.end()) m_instances.erase(known);
  }

 private:
  using Instances = std::vector<std::pair<void*, Exec>>;

  Instances::iterator find(void* stream) {
    return std::find_if(m_instances.begin(), m_instances.end(),
                        [&](const auto& instance) { return instance.first == stream; });
  }

  /// Starts Kokkos at the first call, unless the process runs it. A negative device leaves the choice open.
  void start(const char* function, int device) {
    if (!m_is_ready) {
      if (Kokkos::is_finalized()) {
        throw std::runtime_error("KokkosNN::" + std::string(function) + ": Kokkos has been finalised");
      }
      if (!Kokkos::is_initialized()) initialize(device);
      const std::lock_guard lock(Impl::finalize_hooks_mutex);
      Kokkos::push_finalize_hook([] { get().forget(); });
      m_is_ready = true;
    }
    if (device >= 0 && device != kokkos_device()) {
      (ArgumentError(function) << "the device must be number " << kokkos_device()
                               << ", the only one that Kokkos runs on in this process, but is " << device)
          .raise();
    }
  }

  static void initialize(int device) {
    Kokkos::InitializationSettings settings;
    settings.set_disable_warnings(true);  // about how threads are bound: nobody asked for Kokkos by name
    if (backend != Backend::host) settings.set_device_id(device >= 0 ? device : current_device());
    Kokkos::initialize(settings);
    std::atexit([] {
      if (Kokkos::is_initialized() && !Kokkos::is_finalized()) Kokkos::finalize();
    });
  }

  /// Drops what must not outlive Kokkos.
  void forget() {
    const std::lock_guard lock(m_mutex);
    m_instances.clear();
    m_is_ready = false;
  }

  std::mutex m_mutex;
  bool m_is_ready = false;
  Instances m_instances;
};

/// A place as the caller names it, checked.
struct Place {
  void* stream = nullptr;
  int device   = -1;

  Place(const char* function, const kokkosnn_exec* where) {
    if (where == nullptr) return;
    if (where->device_kind != KOKKOSNN_DEVICE_DEFAULT && where->device_kind != own_kind) {
      (ArgumentError(function) << "device_kind must be " << own_kind << " or 0 in a library for " << Exec::name()
                               << ", but is " << where->device_kind)
          .raise();
    }
    if (backend == Backend::host && where->stream != nullptr) {
      (ArgumentError(function) << "a host has no streams, but stream is " << where->stream).raise();
    }
    stream = where->stream;
    device = where->device_index;
  }
};

constexpr int longest_message = 2048;
thread_local char last_error[longest_message];

constexpr const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

std::string configuration() {
  const int version = KOKKOS_VERSION;
  std::string text  = "{\"version\": \"" KOKKOSNN_VERSION_STRING "\", \"kokkos\": \"";
  text +=
      std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  text += std::string("\", \"backend\": \"") + Exec::name() + "\", \"compiler\": \"" + compiler();
  return text + "\", \"cpu_level\": \"" + KokkosNN::configuration().cpu_level + "\"}";
}

}  // namespace

Exec instance_for(const char* function, const kokkosnn_exec* where) {
  const Place place(function, where);
  return Process::get().instance(function, place.device, place.stream);
}

void release(const char* function, const kokkosnn_exec* where) {
  Process::get().release(Place(function, where).stream);
}

CallersDevice::CallersDevice() : m_device(current_device()) {}

CallersDevice::~CallersDevice() { set_current_device(m_device); }

kokkosnn_status failed(kokkosnn_status status, const char* message) noexcept {
  std::snprintf(last_error, longest_message, "%s", message);
  return status;
}

}  // namespace KokkosNN::C

extern "C" {

const char* kokkosnn_last_error(void) { return KokkosNN::C::last_error; }

const char* kokkosnn_version(void) { return KokkosNN::version(); }

const char* kokkosnn_configuration(void) {
  try {
    static const std::string text = KokkosNN::C::configuration();
    return text.c_str();
  } catch (...) {
    return "{}";  // without memory for so little
  }
}

kokkosnn_status kokkosnn_release_stream(const kokkosnn_exec* exec) {
  return KokkosNN::C::guarded([&] { KokkosNN::C::release("release_stream", exec); });
}
}
