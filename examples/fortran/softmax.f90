! SPDX-FileCopyrightText: 2026 The KokkosNN authors
! SPDX-License-Identifier: Apache-2.0
!> Softmax of a matrix over its columns, its second axis, and the message of a call that is wrong.
program softmax
  use kokkosnn
  implicit none
  real(c_double) :: x(2, 3), y(2, 3), expected(2, 3)
  type(kokkosnn_softmax_options) :: options
  integer :: i

  x = reshape([real(c_double) :: 1, 4, 2, 6, 3, 9], shape(x))
  options%axis = 1
  if (kokkosnn_softmax(c_null_ptr, kokkosnn_matrix(x), kokkosnn_matrix(y), options) /= kokkosnn_success) then
    print *, kokkosnn_error()
    error stop
  end if
  do i = 1, 2
    expected(i, :) = exp(x(i, :)) / sum(exp(x(i, :)))
  end do
  if (any(abs(y - expected) > 1e-14_c_double)) error stop "softmax is wrong"
  print *, "softmax is right"

  options%axis = 2
  if (kokkosnn_softmax(c_null_ptr, kokkosnn_matrix(x), kokkosnn_matrix(y), options) == kokkosnn_success) then
    error stop "an axis out of range is taken"
  end if
  print *, kokkosnn_error()
end program
