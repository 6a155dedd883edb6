# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The targets KokkosNN::KokkosNN and, where MPI was found, KokkosNN::mpi.
include(GenerateExportHeader)

# While the major version is 0, a minor version may change the interface.
set(KokkosNN_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(KokkosNN_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()

# Without the first two GCC does not vectorise the loops around exp; no result depends on errno or on traps.
set(KokkosNN_KERNEL_FLAGS $<$<CXX_COMPILER_ID:GNU,Clang>:-fno-math-errno;-fno-trapping-math>)
# On HIP LLVM would load the constants of a tanh or a double's exp ahead of the loop over rows, and then spill them.
if(Kokkos_ENABLE_HIP OR "HIP" IN_LIST Kokkos_DEVICES)
  list(APPEND KokkosNN_KERNEL_FLAGS "SHELL:-Xarch_device -mllvm=-disable-machine-licm")
endif()

# kokkosnn_link_kokkos(<target>)
#
# A shared library holds no archive of Kokkos: a program that links both would have two, and initialise one. Such a
# library leaves Kokkos' names to the program, which has to link Kokkos anyhow.
function(kokkosnn_link_kokkos target)
  kokkosnn_leaves_kokkos(${target} leaves)
  if(NOT leaves)
    target_link_libraries(${target} PUBLIC Kokkos::kokkos)
    return()
  endif()
  target_link_libraries(${target} INTERFACE Kokkos::kokkos)
  target_link_options(${target} PRIVATE $<$<PLATFORM_ID:Darwin>:LINKER:-undefined,dynamic_lookup>)
  # What remains of linking: the sources see what users see.
  target_include_directories(${target} SYSTEM PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_COMPILE_OPTIONS>)
  target_compile_features(${target} PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_COMPILE_FEATURES>)
  target_link_options(${target} PRIVATE $<TARGET_PROPERTY:Kokkos::kokkos,INTERFACE_LINK_OPTIONS>)
endfunction()

function(kokkosnn_leaves_kokkos target result)
  get_target_property(type ${target} TYPE)
  set(kokkos UNKNOWN_LIBRARY)
  if(TARGET Kokkos::kokkoscore)
    get_target_property(kokkos Kokkos::kokkoscore TYPE)
  endif()
  set(${result} OFF PARENT_SCOPE)
  if(type STREQUAL SHARED_LIBRARY AND kokkos STREQUAL STATIC_LIBRARY)
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

# kokkosnn_is_position_independent(<target> <result>)
function(kokkosnn_is_position_independent target result)
  get_target_property(type ${target} TYPE)
  get_target_property(imported ${target} IMPORTED)
  if(type STREQUAL SHARED_LIBRARY)
    set(answer ON)
  elseif(NOT imported)
    get_target_property(answer ${target} POSITION_INDEPENDENT_CODE)
  else() # an archive does not say: try
    include(CheckCXXSourceCompiles)
    get_target_property(CMAKE_REQUIRED_LIBRARIES ${target} LOCATION)
    set(CMAKE_REQUIRED_FLAGS -fPIC)
    set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
    set(source "namespace Kokkos { bool is_initialized() noexcept; }\n\
bool started() { return Kokkos::is_initialized(); }")
    check_cxx_source_compiles("${source}" KokkosNN_${target}_IS_POSITION_INDEPENDENT)
    set(answer ${KokkosNN_${target}_IS_POSITION_INDEPENDENT})
  endif()
  set(${result} ${answer} PARENT_SCOPE)
endfunction()

# kokkosnn_link_mpi(<target> <library>): the library of KokkosNN::mpi with that of KokkosNN::KokkosNN
function(kokkosnn_link_mpi target library)
  kokkosnn_leaves_kokkos(${target} leaves)
  if(NOT leaves)
    target_link_libraries(${target} PUBLIC ${library} MPI::MPI_CXX)
    return()
  endif()
  # By its file, which brings no Kokkos.
  target_link_libraries(${target} INTERFACE ${library} PUBLIC MPI::MPI_CXX PRIVATE $<TARGET_LINKER_FILE:${library}>)
  add_dependencies(${target} ${library})
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  kokkosnn_link_kokkos(${target})
endfunction()

# kokkosnn_set_up(<target> <MACRO> <header>): what the two libraries have in common. The header defines MACRO_EXPORT,
# for what the public headers need of the library; nothing else is visible outside of it.
function(kokkosnn_set_up target macro header)
  target_compile_options(${target} PRIVATE ${KokkosNN_KERNEL_FLAGS})
  set_target_properties(
    ${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${KokkosNN_SOVERSION} POSITION_INDEPENDENT_CODE ON
                         CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

  # GenerateExportHeader has nothing to export of an archive. Its objects may go into someone's shared library, so they
  # are those of a shared one.
  set(exporting ${target})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    set(exporting ${target}_exporting)
    add_library(${exporting} OBJECT EXCLUDE_FROM_ALL src/version.cpp)
    set_target_properties(${exporting} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    if(WIN32)
      target_compile_definitions(${target} PUBLIC ${macro}_STATIC_DEFINE)
    endif()
  endif()
  generate_export_header(${exporting} BASE_NAME ${macro} EXPORT_FILE_NAME ${PROJECT_BINARY_DIR}/include/${header})
endfunction()

include(cmake/CpuLevels.cmake)
include(cmake/Warpgroups.cmake)
include(cmake/Instantiations.cmake)

# --- KokkosNN::KokkosNN ---
configure_file(include/KokkosNN/version.hpp.in include/KokkosNN/version.hpp @ONLY)
file(GLOB_RECURSE KokkosNN_HEADERS CONFIGURE_DEPENDS include/KokkosNN/*.hpp include/KokkosNN/*.def)
# Of KokkosNN::mpi alone, and installed with it.
set(KokkosNN_MPI_HEADERS ${KokkosNN_HEADERS})
list(FILTER KokkosNN_MPI_HEADERS INCLUDE REGEX "/(mpi\\.hpp|mpi/.*)$")
list(REMOVE_ITEM KokkosNN_HEADERS ${KokkosNN_MPI_HEADERS})
file(GLOB KokkosNN_SOURCES CONFIGURE_DEPENDS src/*.cpp src/plan/*.cpp src/plan/policy/*.cpp src/vendor/*.cpp)
list(APPEND KokkosNN_SOURCES ${KokkosNN_INSTANTIATIONS})

add_library(KokkosNN ${KokkosNN_SOURCES})
add_library(KokkosNN::KokkosNN ALIAS KokkosNN)
target_sources(
  KokkosNN
  PUBLIC FILE_SET HEADERS
         BASE_DIRS include ${PROJECT_BINARY_DIR}/include
         FILES ${KokkosNN_HEADERS} ${KokkosNN_INSTANTIATIONS_HEADERS} ${PROJECT_BINARY_DIR}/include/KokkosNN/version.hpp
               ${PROJECT_BINARY_DIR}/include/KokkosNN/export.hpp)
target_compile_features(KokkosNN PUBLIC cxx_std_20)
kokkosnn_link_kokkos(KokkosNN)
kokkosnn_set_up(KokkosNN KOKKOSNN KokkosNN/export.hpp)
kokkosnn_add_cpu_levels(KokkosNN ${KokkosNN_INSTANTIATIONS_LEVELS})
kokkosnn_add_warpgroups(KokkosNN)
include(cmake/Blas.cmake)

# --- KokkosNN::mpi ---
if(KokkosNN_HAS_MPI)
  file(GLOB KokkosNN_MPI_SOURCES CONFIGURE_DEPENDS src/mpi/*.cpp)
  add_library(KokkosNN_mpi ${KokkosNN_MPI_SOURCES} ${KokkosNN_MPI_INSTANTIATIONS})
  add_library(KokkosNN::mpi ALIAS KokkosNN_mpi)
  target_sources(
    KokkosNN_mpi
    PUBLIC FILE_SET HEADERS
           BASE_DIRS include ${PROJECT_BINARY_DIR}/include
           FILES ${KokkosNN_MPI_HEADERS} ${KokkosNN_MPI_INSTANTIATIONS_HEADERS}
                 ${PROJECT_BINARY_DIR}/include/KokkosNN/mpi_export.hpp)
  kokkosnn_link_mpi(KokkosNN_mpi KokkosNN)
  kokkosnn_set_up(KokkosNN_mpi KOKKOSNN_MPI KokkosNN/mpi_export.hpp)
  set_target_properties(KokkosNN_mpi PROPERTIES EXPORT_NAME mpi)
endif()
include(cmake/Nccl.cmake)

# --- KokkosNN::c, a shared library with KokkosNN and Kokkos inside, and what it shares with the Python package ---
set(KokkosNN_HAS_C OFF)
if(KokkosNN_ENABLE_C OR KokkosNN_ENABLE_PYTHON)
  kokkosnn_is_position_independent(KokkosNN library_can_be_shared)
  kokkosnn_is_position_independent(Kokkos::kokkoscore kokkos_can_be_shared)
  if(library_can_be_shared AND kokkos_can_be_shared)
    set(KokkosNN_HAS_C ON)
  else()
    set(reason "KokkosNN: no C interface, because Kokkos' archives are not position independent; build Kokkos with \
-DCMAKE_POSITION_INDEPENDENT_CODE=ON (a Kokkos that is fetched is)")
    if("ON" IN_LIST KokkosNN_ENABLE_C OR "ON" IN_LIST KokkosNN_ENABLE_PYTHON)
      message(FATAL_ERROR "${reason}")
    endif()
    message(STATUS "${reason}")
  endif()
endif()

if(KokkosNN_HAS_C)
  add_library(KokkosNN_c_objects OBJECT src/c/arguments.cpp src/c/attention.cpp src/c/elementwise.cpp src/c/matmul.cpp
                                         src/c/operators.cpp src/c/quantized.cpp src/c/rope.cpp src/c/runtime.cpp)
  target_include_directories(KokkosNN_c_objects PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_include_directories(KokkosNN_c_objects PRIVATE $<TARGET_PROPERTY:KokkosNN,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(KokkosNN_c_objects PRIVATE Kokkos::kokkos)
  target_compile_features(KokkosNN_c_objects PRIVATE cxx_std_20)
  target_compile_options(KokkosNN_c_objects PRIVATE ${KokkosNN_KERNEL_FLAGS})
  set_target_properties(KokkosNN_c_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                      VISIBILITY_INLINES_HIDDEN ON)

  # kokkosnn_put_inside(<target> <version script>): all that the C functions need, and nothing of it to be seen
  function(kokkosnn_put_inside target script)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:KokkosNN_c_objects> $<TARGET_OBJECTS:KokkosNN>
                                     ${KokkosNN_CPU_LEVEL_OBJECTS} ${KokkosNN_WARPGROUP_OBJECTS})
    target_link_libraries(${target} PRIVATE Kokkos::kokkos ${KokkosNN_BLAS_LIBRARIES})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
    target_link_options(${target} PRIVATE $<$<PLATFORM_ID:Linux>:LINKER:--version-script=${script}>)
  endfunction()

  add_library(KokkosNN_c SHARED)
  add_library(KokkosNN::c ALIAS KokkosNN_c)
  target_sources(KokkosNN_c PUBLIC FILE_SET HEADERS BASE_DIRS include FILES include/KokkosNN/kokkosnn.h)
  kokkosnn_put_inside(KokkosNN_c ${PROJECT_SOURCE_DIR}/src/c/exports.map)
  set_target_properties(
    KokkosNN_c PROPERTIES OUTPUT_NAME kokkosnn_c EXPORT_NAME c LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                          SOVERSION ${KokkosNN_SOVERSION})
  # libcuda.so.1 comes with a GPU's driver, so that a machine that only builds has its stub at most: a program that is
  # linked there leaves this library's symbols to the loader.
  if(Kokkos_ENABLE_CUDA)
    target_link_options(KokkosNN_c INTERFACE $<$<PLATFORM_ID:Linux>:LINKER:--allow-shlib-undefined>)
  endif()
endif()
