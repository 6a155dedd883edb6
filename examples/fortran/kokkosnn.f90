! SPDX-FileCopyrightText: 2026 The KokkosNN authors
! SPDX-License-Identifier: Apache-2.0
!> KokkosNN/kokkosnn.h for Fortran: the types, and those functions that softmax.f90 calls. Others are written alike.
module kokkosnn
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int), parameter :: kokkosnn_success = 0, kokkosnn_f64 = 1, kokkosnn_f32 = 2

  type, bind(c) :: kokkosnn_tensor
    type(c_ptr) :: data
    integer(c_int32_t) :: dtype
    integer(c_int32_t) :: rank
    integer(c_int64_t) :: extents(8)
    integer(c_int64_t) :: strides(8)
  end type

  !> The defaults are those of KOKKOSNN_SOFTMAX_OPTIONS_INIT; axes count from 0, or from the end by -1.
  type, bind(c) :: kokkosnn_softmax_options
    integer(c_size_t) :: size = 32
    real(c_double) :: scale = 1
    integer(c_int32_t) :: axis = -1
    integer(c_int32_t) :: masked_row = 0
    integer(c_int32_t) :: determinism = 0
    integer(c_int32_t) :: reserved = 0
  end type

  interface
    function kokkosnn_softmax(exec, x, y, options) result(status) bind(c)
      import :: c_ptr, c_int, kokkosnn_tensor, kokkosnn_softmax_options
      type(c_ptr), value :: exec
      type(kokkosnn_tensor), intent(in) :: x, y
      type(kokkosnn_softmax_options), intent(in) :: options
      integer(c_int) :: status
    end function

    function kokkosnn_last_error() result(text) bind(c)
      import :: c_ptr
      type(c_ptr) :: text
    end function
  end interface

contains

  !> A matrix of Fortran's: its first axis runs fastest.
  function kokkosnn_matrix(a) result(tensor)
    real(c_double), target, intent(in) :: a(:, :)
    type(kokkosnn_tensor) :: tensor
    tensor%data = c_loc(a)
    tensor%dtype = kokkosnn_f64
    tensor%rank = 2
    tensor%extents = 0
    tensor%strides = 0
    tensor%extents(1:2) = [integer(c_int64_t) :: size(a, 1), size(a, 2)]
    tensor%strides(1:2) = [integer(c_int64_t) :: 1, size(a, 1)]
  end function

  !> The message of the last failure.
  function kokkosnn_error() result(message)
    character(:), allocatable :: message
    character(c_char), pointer :: text(:)
    integer :: i
    call c_f_pointer(kokkosnn_last_error(), text, [2048])
    message = ""
    do i = 1, size(text)
      if (text(i) == c_null_char) exit
      message = message // text(i)
    end do
  end function
end module
