/* SPDX-FileCopyrightText: 2026 The KokkosNN authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <KokkosNN/kokkosnn.h>

#include <stdio.h>

int main(void) {
  double x[2][2]             = {{1, 1}, {3, 3}}, y[2][2];
  const int64_t extents[]    = {2, 2};
  const kokkosnn_tensor from = kokkosnn_row_major(x, KOKKOSNN_F64, 2, extents);
  const kokkosnn_tensor to   = kokkosnn_row_major(y, KOKKOSNN_F64, 2, extents);
  if (kokkosnn_softmax(NULL, &from, &to, NULL) != KOKKOSNN_SUCCESS) {
    printf("%s\n", kokkosnn_last_error());
    return 1;
  }
  printf("KokkosNN %s: softmax is %g\n", kokkosnn_version(), y[1][1]);
  return y[0][0] == 0.5 && y[1][1] == 0.5 ? 0 : 1;
}
