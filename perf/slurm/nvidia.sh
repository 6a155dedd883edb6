#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Columns over MPI ranks on a cluster: sbatch --nodes=N perf/slurm/nvidia.sh [BENCHMARK ARGUMENTS]
#SBATCH --job-name=kokkosnn
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00

# To fill in: the cluster's modules, an account and a partition (#SBATCH --account=..., --partition=...), the
# architecture.
# module load cmake gcc cuda openmpi
# export KOKKOSNN_SRUN_OPTIONS=--mpi=pmix
preset=cuda
arch=Kokkos_ARCH_HOPPER90

. perf/slurm/job.sh
