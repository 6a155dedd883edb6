# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Recipe of Spack for KokkosNN: packages/kokkosnn/package.py of a repository (`spack repo add`)"""

import os

from spack.package import *

try:  # from Spack 1.0 on; before, they come with spack.package
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
    from spack_repo.builtin.build_systems.rocm import ROCmPackage
except ImportError:
    pass


class Kokkosnn(CMakePackage, CudaPackage, ROCmPackage):
    """The row operators of neural networks on Kokkos: softmax, cross entropy, masked and ragged
    softmax, norms, and their gradients, for CUDA, HIP and OpenMP from one source."""

    # Filled in where the sources are published: `git`, and a `version` with its checksum a
    # release. Until then `spack dev-build kokkosnn@main` builds a checkout.
    license("Apache-2.0")

    version("main", branch="main")

    variant("openmp", default=True, description="Host threads by OpenMP")
    variant("mpi", default=False, description="Build KokkosNN::mpi")
    variant("nccl", default=False, description="KokkosNN::mpi exchanges by NCCL or RCCL", when="+mpi")
    variant("shared", default=True, description="Build shared libraries")
    variant("tests", default=False, description="Build the tests and the examples")

    depends_on("cxx", type="build")
    depends_on("cmake@3.23:", type="build")
    depends_on("googletest", type=("build", "link"), when="+tests")
    depends_on("mpi", when="+mpi")
    depends_on("nccl", when="+nccl+cuda")
    depends_on("rccl", when="+nccl+rocm")

    depends_on("kokkos@4.6:")
    depends_on("kokkos+openmp", when="+openmp")
    depends_on("kokkos+serial", when="~openmp")
    depends_on("kokkos+shared", when="+shared")
    # Kokkos refuses CUDA by g++ without its wrapper of nvcc.
    depends_on("kokkos+cuda+wrapper", when="+cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"kokkos cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    depends_on("kokkos+rocm", when="+rocm")
    for arch in ROCmPackage.amdgpu_targets:
        depends_on(f"kokkos amdgpu_target={arch}", when=f"+rocm amdgpu_target={arch}")

    conflicts("+cuda", when="+rocm", msg="One device's backend at a time")
    conflicts("+nccl", when="~cuda~rocm", msg="NCCL and RCCL are for GPUs")
    conflicts("cuda_arch=none", when="+cuda", msg="CUDA needs an architecture: cuda_arch=90")
    conflicts(
        "amdgpu_target=none", when="+rocm", msg="HIP needs an architecture: amdgpu_target=gfx942"
    )

    def nvcc_wrapper(self):
        """Kokkos' compiler for CUDA: a package of its own, or a part of an external Kokkos."""
        name = "kokkos-nvcc-wrapper"
        owner = self.spec[name if name in self.spec else "kokkos"]
        return os.path.join(owner.prefix, "bin", "nvcc_wrapper")

    def cmake_args(self):
        args = [
            self.define("Kokkos_ROOT", self.spec["kokkos"].prefix),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("KokkosNN_ENABLE_MPI", "mpi"),
            self.define("KokkosNN_ENABLE_NCCL", self.spec.satisfies("+nccl")),  # AUTO takes what is installed
            self.define_from_variant("KokkosNN_ENABLE_TESTS", "tests"),
            self.define_from_variant("KokkosNN_ENABLE_EXAMPLES", "tests"),
        ]
        # Spack's wrapper of the compiler adds -march behind CMake's back: kernels are the
        # target's, and further levels of the CPU would not be run.
        if self.spec.target.name != self.spec.target.family.name:
            args.append(self.define("KokkosNN_CPU_LEVELS", "LOWEST"))
        if self.spec.satisfies("+rocm"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
        elif self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.nvcc_wrapper()))
        return args

    def test_examples(self):
        """the installed examples build against the installed library, and are right"""
        source = os.path.join(self.prefix.share, "KokkosNN", "examples")
        cmake = which("cmake")
        roots = [f"-DKokkosNN_ROOT={self.prefix}", f"-DKokkos_ROOT={self.spec['kokkos'].prefix}"]
        cmake("-S", source, "-B", "build", *roots)
        cmake("--build", "build")
        which("ctest")("--test-dir", "build", "--output-on-failure")
