#!/usr/bin/env bash
# What takes too long for every change: each signature of a fault some hundred times, half an hour of
# random faults, thousands of seeds, and the benchmarks. Takes some hours; wants root or a user
# namespace, and a machine with nothing else to do.
#
#   ci/nightly/run.sh [PART...]      acceptance soak property bench report; without one: all
#
# Everything goes into one folder, $NIGHTLY_OUT (default: nightly-out). The last line is
# "N parts good, N not"; exit code 1 when one was not. Settings, with their defaults:
#
#   NIGHTLY_FAULTS=300    strikes of each scenario of acceptance, by repeating it
#   NIGHTLY_REPEATS=30    and at most so many repeats, for those with few strikes in a run
#   NIGHTLY_ONLY=         only these scenarios: names with blanks between them
#   NIGHTLY_SOAK=1800     seconds of random faults
#   NIGHTLY_SEED=7        of them
#   NIGHTLY_SEEDS=5000    seeds of the property tests
#   NIGHTLY_ROUNDS=10     rounds of each benchmark against another program
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

out=${NIGHTLY_OUT:-nightly-out}
faults=${NIGHTLY_FAULTS:-300}
most_repeats=${NIGHTLY_REPEATS:-30}
only=${NIGHTLY_ONLY:-}
soak_seconds=${NIGHTLY_SOAK:-1800}
soak_seed=${NIGHTLY_SEED:-7}
seeds=${NIGHTLY_SEEDS:-5000}
rounds=${NIGHTLY_ROUNDS:-10}

all_parts=(acceptance soak property bench report)
parts=("$@")
((${#parts[@]})) || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
  if [[ " ${all_parts[*]} " != *" $part "* ]]; then
    echo "usage: $0 [PART...], of: ${all_parts[*]}" >&2
    exit 2
  fi
done

mkdir -p "$out"
say() { printf '\n=== %s (%d s)\n' "$*" "$SECONDS"; }

# note PART WHAT EXIT: one line of the summary.
note() { printf '%-12s %-28s exit %s\n' "$1" "$2" "$3" | tee -a "$out/summary.txt"; }

# run_scenario PART FILE FOLDER ARGUMENT...
run_scenario() {
  local part=$1 file=$2 folder=$3 status=0
  shift 3
  build/faultline run "$file" --out "$folder" "$@" >"$folder.txt" 2>&1 || status=$?
  note "$part" "$(basename "$folder")" "$status"
  ((status == 0))
}

# Repeats that make $faults strikes of the fault that a scenario has most of.
repeats_of() {
  local times
  times=$(grep -o 'times: [0-9]*' "$1" | grep -o '[0-9]*' | sort -n | tail -n 1 || true)
  local repeats=$(((faults + ${times:-1} - 1) / ${times:-1}))
  echo $((repeats < most_repeats ? repeats : most_repeats))
}

acceptance() {
  local good=0 file name
  rm -rf "$out/acceptance"
  mkdir -p "$out/acceptance"
  for file in scenarios/acceptance/*.yaml; do
    name=$(basename "$file" .yaml)
    [[ -z $only || " $only " == *" $name "* ]] || continue
    run_scenario acceptance "$file" "$out/acceptance/$name" --repeat "$(repeats_of "$file")" || good=1
  done
  return $good
}

soak() {
  # The work goes on a little after the last fault, so that all rails are back at its end.
  run_scenario soak scenarios/soak.yaml "$out/soak" --seed "$soak_seed" \
    --set "chaos.for=${soak_seconds}s" --set "workload.time=$((soak_seconds + 5))s" \
    --set "limits.deadline=$((soak_seconds + 120))s"
}

property() {
  local status=0 program good=0
  for program in property_channel property_schedule; do
    status=0
    FAULTLINE_SEEDS=$seeds "build/tests/$program" >"$out/$program.txt" 2>&1 || status=$?
    note property "$program" "$status"
    ((status == 0)) || good=1
  done
  return $good
}

# bench_pair NAME ARGUMENT...: throughput against another program, or against one rail.
bench_pair() {
  local name=$1 status=0
  shift
  build/tests/bench_point_to_point --rounds "$rounds" "$@" >"$out/bench-$name.txt" 2>&1 || status=$?
  note bench "$name" "$status"
  ((status == 0)) || return 1
  tail -n 2 "$out/bench-$name.txt" | grep median | sed 's/^/             /' | tee -a "$out/summary.txt"
}

bench() {
  local good=0 program
  bench_pair one-rail-500Mbit --rails 1 --rate 500Mbit --against iperf3 || good=1
  bench_pair unshaped-64MiB --rails 1 --rate unshaped --message $((64 << 20)) --against iperf3 || good=1
  bench_pair four-rails --rails 4 --rate 500Mbit --policy pull --against one-rail || good=1
  bench_pair lost-rail --rails 4 --rate 500Mbit --policy pull --against one-rail --lose-rail || good=1
  for program in bench_reduce bench_authenticator bench_telemetry bench_workload_data; do
    [[ -x build/tests/$program ]] || continue # without Google Benchmark
    "build/tests/$program" --benchmark_out="$out/$program.json" --benchmark_out_format=json \
      >"$out/$program.txt" 2>&1 || good=1
  done
  run_scenario bench scenarios/standing-cost.yaml "$out/standing-cost" || good=1
  run_scenario bench scenarios/standing-cost.yaml "$out/standing-cost-telemetry" \
    --set telemetry=on || good=1
  return $good
}

# What was injected against what was found, over all that is there.
report() {
  local folders=() status=0
  [[ -d $out/acceptance ]] && folders+=("$out/acceptance")
  [[ -f $out/soak/result.json ]] && folders+=("$out/soak")
  if ((${#folders[@]} == 0)); then
    echo "nothing to report: run acceptance or soak first" >&2
    return 1
  fi
  build/faultline report --matrix "${folders[@]}" --out "$out" >"$out/matrix.txt" || status=$?
  note report matrix "$status"
  cat "$out/matrix.txt"
  return $status
}

say "build"
targets=(faultline)
for part in "${parts[@]}"; do
  [[ $part == property ]] && targets+=(property_channel property_schedule)
  [[ $part == bench ]] && targets+=(bench_point_to_point)
done
configure_and_build release "${targets[@]}" >"$out/build.txt" 2>&1 || {
  tail -n 20 "$out/build.txt" >&2
  exit 1
}
if [[ " ${parts[*]} " == *" bench "* ]]; then # those that need Google Benchmark, where it is
  cmake --build --preset release --target bench_reduce bench_authenticator bench_telemetry \
    bench_workload_data >>"$out/build.txt" 2>&1 || true
fi

git rev-parse HEAD >"$out/commit.txt" 2>/dev/null || true
: >"$out/summary.txt"
good=0
bad=0
for part in "${parts[@]}"; do
  say "$part"
  if "$part"; then good=$((good + 1)); else bad=$((bad + 1)); fi
done

say "result"
cat "$out/summary.txt"
echo "$good parts good, $bad not"
((bad == 0))
