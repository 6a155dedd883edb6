// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_FUZZ_KINDS_HPP
#define KOKKOSNN_TEST_FUZZ_KINDS_HPP

#include "draw.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

// Kinds of random calls, and how one is judged.

namespace KokkosNNTest {

/// A kind of random call, and the operators that it reaches.
struct Kind {
  std::vector<RowOperator> operators;
  void (*run)(Draw&);
};

/// Kinds of calls on elements of T: float, double, Half, BHalf. A family is a file.
template <class T>
std::vector<Kind> row_kinds();
template <class T>
std::vector<Kind> loss_kinds();
template <class T>
std::vector<Kind> masked_kinds();
template <class T>
std::vector<Kind> segmented_kinds();
template <class T>
std::vector<Kind> element_kinds();
template <class T>
std::vector<Kind> attention_kinds();
template <class T>
std::vector<Kind> product_kinds();

[[noreturn]] inline void complain(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), why.c_str());
  std::abort();
}

/// run() must succeed; only where a plan is forced may it be refused.
template <class Run>
void expect_right(const std::string& what, bool may_be_refused, const Run& run) {
  try {
    const ::testing::AssertionResult result = run();
    if (!result) complain(what, result.message());
  } catch (const std::invalid_argument& refusal) {
    if (!may_be_refused) complain(what, refusal.what());
  }
}

inline std::string text_of(const Placement& place) {
  std::string text = " [";
  for (int d = 0; d < place.rank(); ++d) {
    text += std::to_string(place.extents[d]) + " by " + std::to_string(place.strides[d]) +
            (d + 1 < place.rank() ? ", " : "");
  }
  return text + "]";
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_FUZZ_KINDS_HPP
