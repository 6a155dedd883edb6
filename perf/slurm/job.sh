# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# Sourced by the job scripts, which set `preset` and `arch`, in the folder that sbatch was called in: the checkout.
# Builds once, then measures with a rank for every task; what is left is perf/out/<preset>-<job>.
set -euo pipefail

if [ ! -x perf/run ]; then
  echo "$0: call sbatch in KokkosNN's checkout, not in $PWD" >&2
  exit 1
fi
if [ -z "${SLURM_NTASKS:-}" ]; then
  echo "$0: this is a job script: sbatch [--nodes N] $0 [BENCHMARK ARGUMENTS]" >&2
  exit 1
fi

export KOKKOSNN_PERF_OUT=${KOKKOSNN_PERF_OUT:-perf/out/$preset-${SLURM_JOB_ID:-job}}
mkdir -p "$KOKKOSNN_PERF_OUT"

# Nodes without a network find this built already, if the same line was run before where there is one.
perf/run --preset "$preset" --ranks 0 "-D$arch=ON"

# Every rank sees all GPUs of its node, and Kokkos takes the one of its number there: GPUs that Slurm hides from each
# other's ranks cannot be reached through each other's memory.
srun --ntasks="$SLURM_NTASKS" --gpu-bind=none --kill-on-bad-exit=1 ${KOKKOSNN_SRUN_OPTIONS:-} \
  perf/run --preset "$preset" -- "$@"
