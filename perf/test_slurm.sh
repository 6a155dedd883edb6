#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
# The job scripts' and perf/run's logic with ranks, on a copy of the scripts, with an srun, a cmake and a benchmark that
# only tell what they were called with.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p perf test bin
cp "$sources/perf/run" "$sources/perf/model.py" perf
cp -r "$sources/perf/slurm" perf
cp "$sources/test/setup.sh" test
export LOG=$folder/log PATH=$folder/bin:$PATH
unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!KOKKOSNN_@}"

program() {
  { echo '#!/usr/bin/env bash'; cat; } > "$1"
  chmod +x "$1"
}
program bin/apt-get <<< 'exit 0'
program bin/cmake << 'END'
echo "cmake $*" >> "$LOG"
[ "$1" = --build ] || exit 0
mkdir -p "$2/perf"
cp benchmark "$2/perf/kokkosnn_mpi_perf"
END
# srun OPTIONS... COMMAND: as many processes as it is told, side by side; the worst status of theirs.
program bin/srun << 'END'
echo "srun $*" >> "$LOG"
while [[ $1 == --* ]]; do
  case $1 in --ntasks=*) tasks=${1#*=} ;; esac
  shift
done
ranks=()
for ((i = 0; i < tasks; ++i)); do
  SLURM_STEP_NODELIST=here SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
  ranks+=($!)
done
worst=0
for rank in "${ranks[@]}"; do
  wait "$rank" || { status=$?; [ "$status" -le "$worst" ] || worst=$status; }
done
exit "$worst"
END
program benchmark << 'END'
echo "rank $SLURM_PROCID $*" >> "$LOG"
if [ "$SLURM_PROCID" = 0 ]; then
  echo '{"context": {}, "points": [], "merges": [], "copies": [{"ranks": 1, "bytes": 1, "seconds": [1]}]}' \
    > "$2/scaling.json"
fi
[ "$SLURM_PROCID" != "${FAILING_RANK:-none}" ] || exit "$FAILING_STATUS"
END

failed=0
# expect <what> <command>...
expect() {
  local what=$1
  shift
  if ! "$@"; then
    failed=$((failed + 1))
    echo "FAILED: $what; the log and the output:"
    cat "$LOG" output
  fi
}
# job <status> <script> <argument>...: runs a job of 2 nodes with 3 tasks each, and expects the status
job() {
  local wanted=$1 status=0
  shift
  : > "$LOG"
  rm -rf perf/out build
  SLURM_NTASKS=6 SLURM_JOB_ID=77 SLURM_PROCID=0 bash "$@" > output 2>&1 || status=$?
  expect "$* ends with $wanted, not $status" [ "$status" = "$wanted" ]
}
logged() { [ "$(grep -c -x -e "$2" "$LOG" || true)" = "$1" ]; }

for cluster in nvidia:cuda:Kokkos_ARCH_HOPPER90 amd:hip:Kokkos_ARCH_AMD_GFX942; do
  IFS=: read -r name preset arch <<< "$cluster"
  job 0 "perf/slurm/$name.sh" --rows 512
  expect "$name configures once, with MPI" logged 1 "cmake --preset $preset -DKokkosNN_ENABLE_MPI=ON -D$arch=ON"
  expect "$name builds once" logged 1 "cmake --build build/$preset --target kokkosnn_mpi_perf"
  expect "$name starts all tasks at once" logged 1 \
    "srun --ntasks=6 --gpu-bind=none --kill-on-bad-exit=1 perf/run --preset $preset -- --rows 512"
  for rank in 0 1 2 3 4 5; do
    expect "$name: rank $rank measures" logged 1 "rank $rank --out perf/out/$preset-77 --rows 512"
  done
  expect "$name: rank 0 reports" [ -s "perf/out/$preset-77/scaling.html" ]
  expect "$name: one rank alone reports" [ "$(grep -c '^Report: ' output)" = 1 ]
done

FAILING_RANK=4 FAILING_STATUS=2 job 2 perf/slurm/nvidia.sh
FAILING_RANK=0 FAILING_STATUS=1 job 1 perf/slurm/nvidia.sh
expect "a wrong result is reported" [ -s perf/out/cuda-77/scaling.html ]
FAILING_RANK=0 FAILING_STATUS=2 job 2 perf/slurm/nvidia.sh
expect "what broke off is not" [ ! -e perf/out/cuda-77/scaling.html ]

KOKKOSNN_SRUN_OPTIONS="--mpi=pmix" job 0 perf/slurm/nvidia.sh
expect "srun gets more options" grep -q -e '--mpi=pmix perf/run' "$LOG"

# Not a job; and not in the checkout.
: > "$LOG"
expect "without Slurm it says so" \
  eval '! bash perf/slurm/nvidia.sh > output 2>&1 && grep -q "this is a job script" output'
expect "elsewhere it says so" \
  eval '! (cd bin && SLURM_NTASKS=1 bash -c "set -- ; preset=cuda arch=x; . ../perf/slurm/job.sh") > output 2>&1 &&
    grep -q "call sbatch in" output'
expect "and nothing was started" [ ! -s "$LOG" ]

[ "$failed" = 0 ]
