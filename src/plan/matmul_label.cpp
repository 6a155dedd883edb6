// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_label.hpp"

#include <KokkosNN/precision.hpp>

#include "tiles.hpp"

#include <sstream>
#include <string>

// The label of a matrix product's kernels.

namespace KokkosNN::Impl {
namespace {

const char* to_string(MatmulForm form) {
  switch (form) {
    case MatmulForm::a_along_b_across:
      return "nn";
    case MatmulForm::a_along_b_along:
      return "nt";
    case MatmulForm::a_across_b_across:
      return "tn";
  }
  return "unknown form";
}

/// Part of a label behind the form.
const char* rows_in_label(MatmulRows kind) {
  switch (kind) {
    case MatmulRows::own:
      return "";
    case MatmulRows::gathered:
      return ",gathered";
    case MatmulRows::summed:
      return ",summed";
  }
  return ",unknown rows";
}

}  // namespace

std::string matmul_label(const char* function, ElementType type, Precision precision, MatmulRows kind,
                         const MatmulPlan& plan, bool is_on_host) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[';
  if (plan.is_on_warpgroups) {
    text << "warpgroups," << (plan.a_across ? 't' : 'n') << (plan.b_along ? 't' : 'n') << ','
         << KokkosNN::to_string(type) << ',' << plan.rows << 'x' << plan.cols << ",ts" << plan.team_size << ']';
    return text.str();
  }
  text << (is_on_host ? "host" : to_string(plan.form)) << rows_in_label(kind) << ',' << KokkosNN::to_string(type)
       << (is_on_host ? "" : suffix_of(precision)) << ',' << plan.rows << 'x' << plan.cols;
  if (plan.parts > 1) text << ",p" << plan.parts;
  if (is_on_host) {
    text << ",t" << plan.league_size;
  } else {
    text << ",c" << plan.copies_a << plan.copies_b << ",ts" << plan.team_size;
  }
  text << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
