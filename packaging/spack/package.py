# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Recipe of Spack for KokkosNN: `spack repo add` a repository with this file as packages/kokkosnn/package.py."""

import os

from spack.package import *


class Kokkosnn(CMakePackage, CudaPackage, ROCmPackage):
    """The row operators of neural networks on Kokkos: softmax, cross entropy, masked and ragged softmax, norms, and
    their gradients, for CUDA, HIP and OpenMP from one source."""

    # Filled in where the sources are published: `git`, and a `version` with its checksum a release. Until then
    # `spack dev-build kokkosnn@main` builds a checkout.
    license("Apache-2.0")

    version("main", branch="main")

    variant("openmp", default=True, description="Host threads by OpenMP")
    variant("mpi", default=False, description="Build KokkosNN::mpi")
    variant("nccl", default=False, description="KokkosNN::mpi exchanges by NCCL or RCCL", when="+mpi")
    variant("shared", default=True, description="Build shared libraries")
    variant("tests", default=False, description="Build the tests and the examples")

    depends_on("cxx", type="build")
    depends_on("cmake@3.23:", type="build")
    depends_on("googletest", type="build", when="+tests")
    depends_on("mpi", when="+mpi")
    depends_on("nccl", when="+nccl+cuda")
    depends_on("rccl", when="+nccl+rocm")

    depends_on("kokkos@4.6:")
    depends_on("kokkos+openmp", when="+openmp")
    depends_on("kokkos+serial", when="~openmp")
    depends_on("kokkos+shared", when="+shared")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"kokkos+cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    for arch in ROCmPackage.amdgpu_targets:
        depends_on(f"kokkos+rocm amdgpu_target={arch}", when=f"+rocm amdgpu_target={arch}")

    conflicts("+cuda", when="+rocm", msg="One device's backend at a time")
    conflicts("+nccl", when="~cuda~rocm", msg="NCCL and RCCL are for GPUs")
    conflicts("cuda_arch=none", when="+cuda", msg="CUDA needs an architecture: cuda_arch=90")
    conflicts("amdgpu_target=none", when="+rocm", msg="HIP needs an architecture: amdgpu_target=gfx942")

    def cmake_args(self):
        args = [
            self.define("Kokkos_ROOT", self.spec["kokkos"].prefix),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("KokkosNN_ENABLE_MPI", "mpi"),
            self.define("KokkosNN_ENABLE_NCCL", self.spec.satisfies("+nccl")),  # AUTO takes what is installed
            self.define_from_variant("KokkosNN_ENABLE_TESTS", "tests"),
            self.define_from_variant("KokkosNN_ENABLE_EXAMPLES", "tests"),
        ]
        if self.spec.satisfies("+rocm"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
        elif self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["kokkos"].kokkos_cxx))
        return args

    def test_examples(self):
        """the installed examples build against the installed library, and are right"""
        source = os.path.join(self.prefix.share, "KokkosNN", "examples")
        cmake = which("cmake")
        roots = [f"-DKokkosNN_ROOT={self.prefix}", f"-DKokkos_ROOT={self.spec['kokkos'].prefix}"]
        cmake("-S", source, "-B", "build", *roots)
        cmake("--build", "build")
        which("ctest")("--test-dir", "build", "--output-on-failure")
