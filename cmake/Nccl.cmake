# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# KokkosNN_ENABLE_NCCL: the library by which KokkosNN::mpi exchanges rows' states on GPUs, NCCL on CUDA, RCCL on HIP.
# Who links KokkosNN::mpi as an archive links its file, too.
set(KokkosNN_HAS_NCCL OFF)
set(KokkosNN_NCCL_LIBRARY_OF_ARCHIVE "")
if(NOT KokkosNN_ENABLE_NCCL)
  return()
endif()

set(definition "")
if(Kokkos_ENABLE_CUDA OR "CUDA" IN_LIST Kokkos_DEVICES)
  set(definition KOKKOSNN_HAS_NCCL)
  set(header nccl.h)
  set(names nccl libnccl.so.2) # PyPI's packages have no other name
  set(hints ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME)
elseif(Kokkos_ENABLE_HIP OR "HIP" IN_LIST Kokkos_DEVICES)
  set(definition KOKKOSNN_HAS_RCCL)
  set(header rccl/rccl.h)
  set(names rccl)
  set(hints ${RCCL_ROOT} ENV RCCL_ROOT ENV ROCM_PATH /opt/rocm)
endif()
if(KokkosNN_HAS_MPI AND definition)
  find_path(KokkosNN_NCCL_INCLUDE_DIR ${header} HINTS ${hints} PATH_SUFFIXES include)
  find_library(KokkosNN_NCCL_LIBRARY NAMES ${names} NAMES_PER_DIR HINTS ${hints} PATH_SUFFIXES lib lib64)
  mark_as_advanced(KokkosNN_NCCL_INCLUDE_DIR KokkosNN_NCCL_LIBRARY)
  if(KokkosNN_NCCL_INCLUDE_DIR AND KokkosNN_NCCL_LIBRARY)
    set(KokkosNN_HAS_NCCL ON)
  endif()
endif()

if(KokkosNN_HAS_NCCL)
  message(STATUS "KokkosNN: KokkosNN::mpi exchanges by ${KokkosNN_NCCL_LIBRARY}")
  set_source_files_properties(src/mpi/nccl.cpp PROPERTIES INCLUDE_DIRECTORIES "${KokkosNN_NCCL_INCLUDE_DIR}"
                                                          COMPILE_DEFINITIONS ${definition})
  target_link_libraries(KokkosNN_mpi PRIVATE ${KokkosNN_NCCL_LIBRARY})
  get_target_property(type KokkosNN_mpi TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    set(KokkosNN_NCCL_LIBRARY_OF_ARCHIVE ${KokkosNN_NCCL_LIBRARY})
  endif()
elseif("ON" STREQUAL KokkosNN_ENABLE_NCCL)
  if(NOT KokkosNN_HAS_MPI OR NOT definition)
    message(FATAL_ERROR "KokkosNN: KokkosNN_ENABLE_NCCL is ON, but it is for KokkosNN::mpi (KokkosNN_ENABLE_MPI) on "
                        "CUDA or HIP.")
  endif()
  message(FATAL_ERROR "KokkosNN: KokkosNN_ENABLE_NCCL is ON, but ${header} or its library was not found; NCCL_ROOT, on "
                      "HIP RCCL_ROOT, names their folder, and Debian has libnccl-dev.")
endif()
