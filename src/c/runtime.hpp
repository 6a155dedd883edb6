// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_C_RUNTIME_HPP
#define KOKKOSNN_SRC_C_RUNTIME_HPP

#include <KokkosNN/kokkosnn.h>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

// A C call's surroundings: Kokkos, its instances, and what is left of an exception.

namespace KokkosNN::C {

using Exec = Kokkos::DefaultExecutionSpace;

/// The instance that enqueues on a stream; the same one for each call on it. Starts Kokkos where nobody has.
///
/// \param function  the public function's name, for messages
/// \param where     may be null
///
/// Throws std::invalid_argument for a device or a stream that this library does not serve.
Exec instance_for(const char* function, const kokkosnn_exec* where);

/// Drops the instance of a stream, if there is one.
void release(const char* function, const kokkosnn_exec* where);

/// Restores the calling thread's current device when it goes: Kokkos makes its own the current one.
class CallersDevice {
 public:
  CallersDevice();
  ~CallersDevice();
  CallersDevice(const CallersDevice&)            = delete;
  CallersDevice& operator=(const CallersDevice&) = delete;

 private:
  int m_device;
};

/// Runs body(instance) for a place, as a region of Kokkos' tools that has the function's name.
template <class Body>
void on_instance(const char* function, const kokkosnn_exec* where, const Body& body) {
  const CallersDevice device;
  const Exec exec = instance_for(function, where);
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  body(exec);
}

/// Keeps the message for kokkosnn_last_error, and returns the status.
kokkosnn_status failed(kokkosnn_status status, const char* message) noexcept;

/// Runs the body of a C function: no exception leaves it.
template <class Body>
kokkosnn_status guarded(const Body& body) noexcept {
  try {
    body();
    return KOKKOSNN_SUCCESS;
  } catch (const std::invalid_argument& error) {
    return failed(KOKKOSNN_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc& error) {
    return failed(KOKKOSNN_OUT_OF_MEMORY, error.what());
  } catch (const std::exception& error) {
    return failed(KOKKOSNN_FAILURE, error.what());
  } catch (...) {
    return failed(KOKKOSNN_FAILURE, "KokkosNN: an exception of an unknown type");
  }
}

}  // namespace KokkosNN::C

#endif  // KOKKOSNN_SRC_C_RUNTIME_HPP
