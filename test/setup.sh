# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Sourced by test/run, perf/run, perf/tune and .ci/run: their arguments, and the packages that they need.

preset=
full=
ranks=
defines=()
rest=()
wishes=() # packages that a script would like to have besides GoogleTest and Google Benchmark

# parse <argument>...: --preset NAME, --full and --ranks N (perf/run alone), -D..., -- and what is passed on; needs a
# function usage
parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      --preset) preset=${2:?--preset needs a name}; shift ;;
      --preset=*) preset=${1#*=} ;;
      -D?*) defines+=("$1") ;;
      --full) full=--full ;;
      --ranks) ranks=${2:?--ranks needs a number}; shift ;;
      --) shift; rest=("$@"); break ;;
      -h | --help) usage; exit 0 ;;
      *) echo "$0: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
  done
}

# The best backend that the machine has.
best_preset() {
  if command -v nvcc > /dev/null && nvidia-smi -L > /dev/null 2>&1; then
    echo cuda
  elif command -v hipcc > /dev/null && rocminfo > /dev/null 2>&1; then
    echo hip
  else
    echo openmp
  fi
}

# packages [<command that succeeds if it is there> <Debian package>]...
# Installs what is missing if it may, else names it and stops. GoogleTest, Google Benchmark and a compiler cache are
# only a wish: CMake fetches the first two where they aren't installed. So is what `wishes` names.
packages() {
  local missing=() wished=("${wishes[@]}")
  command -v cmake > /dev/null || missing+=(cmake)
  command -v "${CXX:-c++}" > /dev/null || missing+=(g++)
  command -v ninja > /dev/null || command -v make > /dev/null || missing+=(ninja-build)
  while [ $# -gt 0 ]; do
    eval "$1" > /dev/null 2>&1 || missing+=("$2")
    shift 2
  done
  [ -e /usr/include/gtest/gtest.h ] || wished+=(libgtest-dev)
  [ -e /usr/include/benchmark/benchmark.h ] || wished+=(libbenchmark-dev)
  command -v ccache > /dev/null || wished+=(ccache)

  if [ $((${#missing[@]} + ${#wished[@]})) -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "== Installing ${missing[*]} ${wished[*]}"
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      "${missing[@]}" "${wished[@]}" > /dev/null; then
      missing=()
    fi
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    echo "$0: please install what is missing (Debian's names): ${missing[*]}" >&2
    exit 1
  fi

  # As parallel as the machine is, whichever generator CMake takes.
  command -v ninja > /dev/null && export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
  export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
  export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
  use_compiler_cache
}

# Objects of equal sources, wherever they lie, are compiled once. KOKKOSNN_CCACHE=0 switches it off. Not for GPUs, whose
# compilers Kokkos or hipcc launch.
use_compiler_cache() {
  case $preset in cuda | hip | dev-registers) return 0 ;; esac
  [ "${KOKKOSNN_CCACHE:-1}" != 0 ] && command -v ccache > /dev/null || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
}
