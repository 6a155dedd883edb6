/* SPDX-FileCopyrightText: 2026 The KokkosNN authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <KokkosNN/kokkosnn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C interface as a C11 program has it. A line a check that fails. */

static int failures = 0;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("FAILED: %s (last error: %s)\n", what, kokkosnn_last_error());
}

/* Every operator of the table, and its form on ragged rows if it has one, is a function here: this does not compile
 * otherwise. */
typedef void (*function)(void);
struct named {
  const char* name;
  function address;
};
#define ragged(name) {"segmented_" #name, (function)kokkosnn_segmented_##name},
#define dense(name)
#define KOKKOSNN_OPERATOR(name, family, form, inputs, reduction, output, options) \
  {#name, (function)kokkosnn_##name}, form(name)
static const struct named operators[] = {
#include <KokkosNN/impl/operators.def>
};
#undef KOKKOSNN_OPERATOR
#undef ragged
#undef dense

static void every_operator_is_a_function(void) {
  const size_t count = sizeof(operators) / sizeof(operators[0]);
  check(count >= 20, "the table has the operators");
  for (size_t i = 0; i < count; ++i) check(operators[i].address != NULL, operators[i].name);
}

static kokkosnn_tensor matrix(float* data, int64_t rows, int64_t cols) {
  const int64_t extents[] = {rows, cols};
  return kokkosnn_row_major(data, KOKKOSNN_F32, 2, extents);
}

static void softmax_is_right_on_both_axes(void) {
  float x[2][3]              = {{1, 2, 3}, {4, 6, 9}}, y[2][3];
  const kokkosnn_tensor from = matrix(&x[0][0], 2, 3), to = matrix(&y[0][0], 2, 3);

  check(kokkosnn_softmax(NULL, &from, &to, NULL) == KOKKOSNN_SUCCESS, "softmax with the defaults");
  for (int r = 0; r < 2; ++r) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += exp((double)x[r][c]);
    for (int c = 0; c < 3; ++c) check(fabs(y[r][c] - exp((double)x[r][c]) / sum) < 1e-6, "softmax along the last axis");
  }

  kokkosnn_softmax_options options = KOKKOSNN_SOFTMAX_OPTIONS_INIT;
  options.axis                     = 0;
  options.scale                    = 0.5;
  check(kokkosnn_softmax(NULL, &from, &to, &options) == KOKKOSNN_SUCCESS, "softmax with options");
  for (int c = 0; c < 3; ++c) {
    const double sum = exp(0.5 * x[0][c]) + exp(0.5 * x[1][c]);
    for (int r = 0; r < 2; ++r) check(fabs(y[r][c] - exp(0.5 * x[r][c]) / sum) < 1e-6, "scaled softmax along axis 0");
  }
}

static void columns_run_fastest_in_fortran(void) {
  float x[6]           = {1, 4, 2, 6, 3, 9}, y[6]; /* the matrix above, by columns */
  kokkosnn_tensor from = matrix(x, 2, 3), to = matrix(y, 2, 3);
  from.strides[0] = to.strides[0] = 1;
  from.strides[1] = to.strides[1] = 2;
  check(kokkosnn_softmax(NULL, &from, &to, NULL) == KOKKOSNN_SUCCESS, "softmax of columns that run fastest");
  const double sum = exp(1.0) + exp(2.0) + exp(3.0);
  check(fabs(y[0] - exp(1.0) / sum) < 1e-6 && fabs(y[4] - exp(3.0) / sum) < 1e-6, "strides are heeded");
}

static void an_error_has_a_message_and_writes_nothing(void) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {-1, -1, -1, -1, -1, -1};
  const kokkosnn_tensor from       = matrix(x, 2, 3);
  const kokkosnn_tensor to         = matrix(y, 2, 3);
  const kokkosnn_tensor other      = matrix(y, 3, 2);
  kokkosnn_softmax_options options = KOKKOSNN_SOFTMAX_OPTIONS_INIT;

  check(kokkosnn_softmax(NULL, &from, &other, NULL) == KOKKOSNN_INVALID_ARGUMENT, "extents that differ are an error");
  check(strcmp(kokkosnn_last_error(),
               "KokkosNN::softmax: x and y must have the same extents, but x is (2, 3) and y is (3, 2)") == 0,
        "the message of extents that differ");
  options.axis = 2;
  check(kokkosnn_softmax(NULL, &from, &to, &options) == KOKKOSNN_INVALID_ARGUMENT, "an axis out of range is an error");
  check(strstr(kokkosnn_last_error(), "axis 2 is out of range for rank 2") != NULL, "the message of the axis");
  for (int i = 0; i < 6; ++i) check(y[i] == -1, "nothing is written on an error");
}

static void the_library_says_what_it_is(void) {
  check(kokkosnn_version()[0] >= '0' && kokkosnn_version()[0] <= '9', "the version is a number");
  check(strstr(kokkosnn_configuration(), kokkosnn_version()) != NULL, "the configuration has the version");
  check(strstr(kokkosnn_configuration(), "\"backend\": \"") != NULL, "the configuration has the backend");
}

int main(void) {
  check(strcmp(kokkosnn_last_error(), "") == 0, "there is no error before a call");
  the_library_says_what_it_is();
  every_operator_is_a_function();
  if (strstr(kokkosnn_configuration(), "\"Cuda\"") != NULL || strstr(kokkosnn_configuration(), "\"HIP\"") != NULL) {
    printf("SKIPPED: the memory of a C program is a host's; test_c_calls has the calls\n");
    return failures;
  }
  softmax_is_right_on_both_axes();
  columns_run_fastest_in_fortran();
  an_error_has_a_message_and_writes_nothing();
  if (failures == 0) printf("C interface %s: all checks hold\n", kokkosnn_version());
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
