# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The Python package is built where it is wished for, there is a C interface, and Python has nanobind.
set(KokkosNN_HAS_PYTHON OFF)
set(KokkosNN_PYTHON_LACKS "")
if(KokkosNN_ENABLE_PYTHON)
  find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
  if(NOT KokkosNN_HAS_C)
    set(KokkosNN_PYTHON_LACKS "a Kokkos of position independent archives")
  elseif(NOT Python_Interpreter_FOUND OR NOT Python_Development.Module_FOUND)
    set(KokkosNN_PYTHON_LACKS "Python 3.9 or newer with its headers (Debian: python3-dev)")
  else()
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE has_no_nanobind)
    if(has_no_nanobind)
      set(KokkosNN_PYTHON_LACKS "nanobind (pip install nanobind numpy pytest, for ${Python_EXECUTABLE})")
    else()
      find_package(nanobind CONFIG REQUIRED)
      set(KokkosNN_HAS_PYTHON ON)
    endif()
  endif()
  if(KokkosNN_PYTHON_LACKS AND "ON" IN_LIST KokkosNN_ENABLE_PYTHON)
    message(FATAL_ERROR "KokkosNN: the Python package needs ${KokkosNN_PYTHON_LACKS}")
  elseif(KokkosNN_PYTHON_LACKS)
    message(STATUS "KokkosNN: no Python package, which needs ${KokkosNN_PYTHON_LACKS}")
  endif()
endif()
if(KokkosNN_HAS_PYTHON)
  # Handlers for JAX need the headers of jaxlib alone, and run with any JAX since.
  set(KokkosNN_JAX_INCLUDE_DIR "")
  if(KokkosNN_ENABLE_JAX)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c
              "from importlib.util import find_spec; print(find_spec('jaxlib').submodule_search_locations[0])"
      OUTPUT_VARIABLE jaxlib OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS ${jaxlib}/include/xla/ffi/api/ffi.h)
      set(KokkosNN_JAX_INCLUDE_DIR ${jaxlib}/include)
    elseif("ON" STREQUAL KokkosNN_ENABLE_JAX)
      message(FATAL_ERROR "KokkosNN: KokkosNN_ENABLE_JAX is ON, but ${Python_EXECUTABLE} has no jaxlib with "
                          "xla/ffi/api/ffi.h (pip install jaxlib)")
    else()
      message(STATUS "KokkosNN: no handlers for JAX in the Python package, which need jaxlib (pip install jaxlib, "
                     "for ${Python_EXECUTABLE})")
    endif()
  endif()
  add_subdirectory(python)
endif()
