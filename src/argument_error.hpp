// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_ARGUMENT_ERROR_HPP
#define KOKKOSNN_SRC_ARGUMENT_ERROR_HPP

#include <KokkosNN/impl/call/layout.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

namespace KokkosNN::Impl {

/// Starts an error message with the public function's name.
class ArgumentError {
 public:
  explicit ArgumentError(const char* function) { m_text << "KokkosNN::" << function << ": "; }

  template <class T>
  ArgumentError& operator<<(const T& part) {
    m_text << part;
    return *this;
  }
  [[noreturn]] void raise() const { throw std::invalid_argument(m_text.str()); }

 private:
  std::ostringstream m_text;
};

inline std::string shape_of(const Tensor& t) {
  std::ostringstream text;
  text << '(';
  for (int k = 0; k < t.rank; ++k) text << (k > 0 ? ", " : "") << t.extent[k];
  text << ')';
  return text.str();
}

inline std::string strides_of(const Tensor& t) {
  Tensor strides = t;
  std::copy_n(t.stride, t.rank, strides.extent);
  return shape_of(strides);
}

/// Raises the error of two operands that overlap; it says whether the two may be the same View.
[[noreturn]] inline void raise_overlap(const char* function, const char* name, const Tensor& input,
                                       const char* output_name, const Tensor& output, bool may_be_same) {
  (ArgumentError(function) << name << " at " << input.data << ", extents " << shape_of(input) << ", and " << output_name
                           << " at " << output.data << ", extents " << shape_of(output) << ", overlap"
                           << (may_be_same ? "; only in place (the same View twice) may" : ""))
      .raise();
}

/// Refuses an input that shares memory with an output, unless it may be the same View and is.
inline void require_apart(const char* function, const char* name, const Tensor& input, const char* output_name,
                          const Tensor& output, bool may_be_same) {
  if (!input.exists() || (may_be_same && is_same_view(input, output))) return;
  if (overlaps(input, output)) raise_overlap(function, name, input, output_name, output, may_be_same);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_ARGUMENT_ERROR_HPP
