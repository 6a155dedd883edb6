#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Columns over MPI ranks on a cluster: sbatch --nodes=N perf/slurm/amd.sh [BENCHMARK ARGUMENTS]
#SBATCH --job-name=kokkosnn
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00

# To fill in: the cluster's modules, an account and a partition (#SBATCH --account=..., --partition=...), the
# architecture.
# module load cmake rocm cray-mpich
# export MPICH_GPU_SUPPORT_ENABLED=1 KOKKOSNN_SRUN_OPTIONS=--mpi=cray_shasta
preset=hip
arch=Kokkos_ARCH_AMD_GFX942

. perf/slurm/job.sh
