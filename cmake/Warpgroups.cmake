# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Kernels for Hopper's warpgroups, whose instructions sm_90a alone has: their files are compiled for it in place of
# sm_90, where nvcc compiles for that. From CUDA 13 on nvcc adds portable code, which later devices need of Kokkos' own
# kernels in such a file. All other files stay as they are.
set(KokkosNN_HAS_WARPGROUPS OFF)
get_target_property(of_kokkos Kokkos::kokkos INTERFACE_COMPILE_OPTIONS)
if(TARGET Kokkos::kokkoscore)
  get_target_property(of_core Kokkos::kokkoscore INTERFACE_COMPILE_OPTIONS)
  list(APPEND of_kokkos ${of_core})
endif()
# Relocatable code of sm_90a can't be linked with that of sm_90.
if(of_kokkos MATCHES "[;:]-arch=sm_90([;>]|$)" AND NOT of_kokkos MATCHES "-rdc=true|--relocatable-device-code=true")
  set(KokkosNN_HAS_WARPGROUPS ON)
  message(STATUS "KokkosNN: matrix products of 16-bit elements have kernels for sm_90a, too")
endif()

# kokkosnn_compile_for_warpgroups(<target>): an object library compiled against Kokkos, for sm_90a
function(kokkosnn_compile_for_warpgroups target)
  set(options $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_COMPILE_OPTIONS>)
  target_include_directories(${target} SYSTEM PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE KOKKOSNN_FOR_SM_90A
                                               $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(${target} PRIVATE $<FILTER:${options},EXCLUDE,^-arch=> -arch=sm_90a)
  target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()

# kokkosnn_add_warpgroups(<target>): the library's own such kernels; the objects are KokkosNN_WARPGROUP_OBJECTS, too,
# for those who take the target's objects
function(kokkosnn_add_warpgroups target)
  set(objects "")
  file(GLOB sources CONFIGURE_DEPENDS src/warpgroups/*.cpp)
  if(KokkosNN_HAS_WARPGROUPS)
    add_library(${target}_warpgroups OBJECT ${sources})
    target_include_directories(${target}_warpgroups PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    kokkosnn_compile_for_warpgroups(${target}_warpgroups)
    target_compile_options(${target}_warpgroups PRIVATE ${KokkosNN_KERNEL_FLAGS})
    set_target_properties(${target}_warpgroups PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                          VISIBILITY_INLINES_HIDDEN ON)
    set(objects $<TARGET_OBJECTS:${target}_warpgroups>)
    target_sources(${target} PRIVATE ${objects})
  elseif(Kokkos_ENABLE_CUDA OR "CUDA" IN_LIST Kokkos_DEVICES)
    target_sources(${target} PRIVATE ${sources}) # they say that they have none
  endif()
  set(KokkosNN_WARPGROUP_OBJECTS ${objects} PARENT_SCOPE)
endfunction()
