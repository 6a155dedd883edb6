// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/verbose.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

namespace KokkosNN::Impl {

bool is_verbose() {
  static const bool is_asked_for = [] {
    const char* value = std::getenv("KOKKOSNN_VERBOSE");
    return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
  }();
  return is_asked_for;
}

void report_plan(const char* function, const Tensor& x, std::int64_t rows, std::int64_t cols, const RowPlan& plan,
                 const std::string& reason) {
  std::ostringstream how;
  how << rows << " rows of " << cols << ", ";
  if (rows > 0) {
    how << to_string(plan) << ", " << reason;
  } else {
    how << "nothing to launch for rows";
  }
  report_call(function, x, how.str());
}

void report_call(const char* function, const Tensor& x, const std::string& how) {
  std::ostringstream line;
  line << "KokkosNN::" << function << " of " << to_string(x.type);
  for (int k = 0; k < x.rank; ++k) line << (k == 0 ? " (" : ", ") << x.extent[k];
  line << (x.rank > 0 ? "): " : ": ") << how << '\n';
  // At once, so that lines of several threads or ranks stay whole.
  std::fputs(line.str().c_str(), stderr);
}

}  // namespace KokkosNN::Impl
