#!/usr/bin/env bash
# What takes too long for every change: each signature of a fault some hundred times, half an hour of
# random faults, thousands of seeds, all unit and property tests under sanitizers, the benchmarks,
# small mistakes in the code that the tests must notice (ci/nightly/mutate.sh), and of all sources what
# ci/test.sh asks of those that changed (clang-tidy; headers that compile alone).
# Takes some hours; wants root or a user namespace, and a machine with nothing else to do.
#
#   ci/nightly/run.sh [PART...]      acceptance soak property sanitizers bench mutants sources report;
#                                    without one: all
#
# Everything goes into one folder, $NIGHTLY_OUT (default: nightly-out). What was done there already,
# by the same commit and with the same settings, is not done again, so that a run that was broken
# off goes on. The last line is "N parts good, N not"; exit code 1 when one was not. Settings, with
# their defaults:
#
#   NIGHTLY_FORCE=0       1: do everything again
#   NIGHTLY_LANES=1       so many scenarios of acceptance at a time, each on 2 cores of its own
#   NIGHTLY_FAULTS=300    strikes of each scenario of acceptance, by repeating it
#   NIGHTLY_REPEATS=30    and at most so many repeats, for those with few strikes in a run
#   NIGHTLY_PART=0        repeats of a scenario in one piece of work; 0: all of them. What is in pieces
#                         keeps all lanes busy; the table has it in one row
#   NIGHTLY_SECONDS=0     after so long no piece of acceptance is begun any more; 0: for ever. Those
#                         left are done when it is called again
#   NIGHTLY_ONLY=         only these scenarios: names with blanks between them
#   NIGHTLY_SOAK=1800     seconds of random faults
#   NIGHTLY_SEED=7        of them
#   NIGHTLY_SEEDS=5000    seeds of the property tests
#   NIGHTLY_ROUNDS=10     rounds of each benchmark against another program
#   NIGHTLY_MUTANTS=60    mutants of each room
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

out=${NIGHTLY_OUT:-nightly-out}
faults=${NIGHTLY_FAULTS:-300}
most_repeats=${NIGHTLY_REPEATS:-30}
part_repeats=${NIGHTLY_PART:-0}
most_seconds=${NIGHTLY_SECONDS:-0}
only=${NIGHTLY_ONLY:-}
soak_seconds=${NIGHTLY_SOAK:-1800}
soak_seed=${NIGHTLY_SEED:-7}
seeds=${NIGHTLY_SEEDS:-5000}
rounds=${NIGHTLY_ROUNDS:-10}
mutants_of_a_room=${NIGHTLY_MUTANTS:-60}
force=${NIGHTLY_FORCE:-0}
lanes=${NIGHTLY_LANES:-1}
readonly cores_of_a_lane=2
if ((lanes > 1 && lanes * cores_of_a_lane > $(nproc))); then
  echo "$lanes lanes of $cores_of_a_lane cores do not fit on $(nproc) cores" >&2
  exit 2
fi

all_parts=(acceptance soak property sanitizers bench mutants sources report)
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

# once PART NAME COMMAND...: runs the command, its output in $out/NAME.txt, and notes how it ended;
# or only notes that again, when the same commit has run the same command to its end before.
once() {
  local part=$1 name=$2 status=0 what
  shift 2
  what="$commit $*"
  if [[ $force == 1 || ! -f $out/$name.done || $(tail -n +2 "$out/$name.done") != "$what" ]]; then
    rm -rf "${out:?}/$name" "$out/$name.done"
    mkdir -p "$(dirname "$out/$name")"
    "$@" >"$out/$name.txt" 2>&1 || status=$?
    printf '%s\n%s\n' "$status" "$what" >"$out/$name.done"
  else
    status=$(head -n 1 "$out/$name.done")
  fi
  note "$part" "$(basename "$name")" "$status"
  ((status == 0))
}

# run_scenario PART FILE NAME ARGUMENT...
run_scenario() {
  local part=$1 file=$2 name=$3
  shift 3
  once "$part" "$name" "${pinned[@]}" build/faultline run "$file" --out "$out/$name" --force "$@"
}
pinned=()

# Repeats that make $faults strikes of the fault that a scenario has most of.
repeats_of() {
  local times
  times=$(grep -o 'times: [0-9]*' "$1" | grep -o '[0-9]*' | sort -n | tail -n 1 || true)
  local repeats=$(((faults + ${times:-1} - 1) / ${times:-1}))
  echo $((repeats < most_repeats ? repeats : most_repeats))
}

# pieces: a line for each piece of the acceptance, "FILE NAME REPEATS", those with most repeats first:
# what has few strikes in a run takes longest.
pieces() {
  local file name repeats number
  for file in scenarios/acceptance/*.yaml; do
    name=$(basename "$file" .yaml)
    [[ -z $only || " $only " == *" $name "* ]] || continue
    repeats=$(repeats_of "$file")
    if ((part_repeats == 0 || repeats <= part_repeats)); then
      echo "$repeats $file $name $repeats"
      continue
    fi
    for ((number = 1; repeats > 0; number++, repeats -= part_repeats)); do
      echo "$repeats $file $name.$number $((repeats < part_repeats ? repeats : part_repeats))"
    done
  done | sort -rn -s -k 1,1 | cut -d ' ' -f 2-
}

# take_piece: the next line of the queue, which is gone from it then.
take_piece() {
  (
    flock 9
    head -n 1 "$out/queue.txt"
    sed -i 1d "$out/queue.txt"
  ) 9>"$out/queue.lock"
}

# lane N: one piece after the other, on the cores of that lane.
lane() {
  local lane=$1 file name repeats good=0
  if ((lanes > 1)); then
    local first=$((lane * cores_of_a_lane))
    pinned=(taskset -c "$first-$((first + cores_of_a_lane - 1))")
  fi
  while ((most_seconds == 0 || SECONDS < most_seconds)); do
    read -r file name repeats < <(take_piece) || break
    run_scenario acceptance "$file" "acceptance/$name" --repeat "$repeats" || good=1
  done
  return $good
}

acceptance() {
  local good=0 number left running=()
  pieces >"$out/queue.txt"
  for ((number = 0; number < lanes; number++)); do
    lane "$number" &
    running+=($!)
  done
  for number in "${running[@]}"; do wait "$number" || good=1; done
  left=$(wc -l <"$out/queue.txt")
  rm -f "$out/queue.txt" "$out/queue.lock"
  if ((left > 0)); then
    printf '%-12s %-28s not begun after %s s\n' acceptance "$left pieces" "$most_seconds" |
      tee -a "$out/summary.txt"
    good=1
  fi
  return $good
}

soak() {
  # Half of the time for each of the two strategies. The work goes on a little after the last fault,
  # so that all rails are back at its end.
  local each=$((soak_seconds / 2))
  run_scenario soak scenarios/soak.yaml soak --seed "$soak_seed" \
    --set "fault_processes.0.for=${each}s" --set "workload.time=$((each + 5))s" \
    --set "limits.deadline=$((each + 120))s"
}

property() {
  local program good=0
  for program in property_channel property_schedule; do
    once property "$program" env FAULTLINE_SEEDS="$seeds" "build/tests/$program" || good=1
  done
  return $good
}

# sanitized PRESET: builds and runs the tests of that preset, all of them, and the plugin for NCCL in
# namespaces, where the rails fail for real.
sanitized() {
  cmake --preset "$1" -DFAULTLINE_SANITIZE_ALL=ON && cmake --build --preset "$1" -j "$cores" &&
    cmake --build --preset "$1" -j "$cores" --target netns_nccl &&
    "${fixed_addresses[@]}" ctest --preset "$1" --no-tests=error -j "$cores" &&
    "${fixed_addresses[@]}" ctest --test-dir "build-$1" --no-tests=error --output-on-failure \
      -R '^netns[.]nccl'
}

sanitizers() {
  local sanitizer good=0
  for sanitizer in asan tsan; do once sanitizers "$sanitizer" sanitized "$sanitizer" || good=1; done
  return $good
}

# What the issue of the channel demands of I/O threads, it demands of a machine with so many cores.
readonly cores_for_io_threads=16

# skip PART WHAT WHY: one line of the summary, for what this machine cannot judge.
skip() { printf '%-12s %-28s skipped: %s\n' "$1" "$2" "$3" | tee -a "$out/summary.txt"; }

# bench_pair NAME ARGUMENT...: throughput against another program, or against one rail.
bench_pair() {
  local name=$1
  shift
  once bench "bench-$name" build/tests/bench_point_to_point --rounds "$rounds" "$@" || return 1
  tail -n 2 "$out/bench-$name.txt" | grep median | sed 's/^/             /' | tee -a "$out/summary.txt"
}

google_benchmarks=(bench_reduce bench_schedule bench_authenticator bench_telemetry
  bench_workload_data bench_verbs_idle)

# bench_target PROGRAM NAME FIELD least=NUMBER|most=NUMBER [ROW]: what it measured reaches the
# target. ROW tells gates of the same program and field apart.
bench_target() {
  local program=$1 gate=$1-$3${5:+-$5} status=0
  [[ -e $out/$program.json ]] || return 0
  awk -v name="$2" -v value="$3" -v "$4" -f ci/nightly/bench_targets.awk "$out/$program.json" \
    >"$out/$gate.txt" || status=$?
  note bench "$gate" "$status"
  sed 's/^/             /' "$out/$gate.txt" | tail -n 3 | tee -a "$out/summary.txt"
  return "$status"
}

# What the verbs shim adds to a call, each row of docs/verbs.md by itself.
verbs_targets() {
  local good=0 row
  # What no fault is about: at most 5 ns or 1 %, whichever is more.
  for row in idle/post_send idle/post_recv idle/poll_cq armed_elsewhere/post_send \
    armed_elsewhere/post_recv armed_elsewhere/poll_cq armed_beside/post_send armed_beside/poll_cq; do
    bench_target bench_verbs_idle "^$row" of_bound most=1 "${row/\//-}" || good=1
  done
  # What a fault is about, which waits for its trigger: ns.
  local all='^armed_here/[a-z_]+/' held='^armed_here/qp_(delay|rate)/'
  local others='^armed_here/(completion_loss|completion_rewrite|qp_error|post_error)/'
  bench_target bench_verbs_idle "$all"post_recv added_ns most=30 here-post_recv || good=1
  bench_target bench_verbs_idle "$others"post_send added_ns most=30 here-post_send || good=1
  bench_target bench_verbs_idle "$others"poll_cq added_ns most=50 here-poll_cq || good=1
  bench_target bench_verbs_idle '^armed_here/qp_delay/post_send' added_ns most=30 \
    here-delay-post_send || good=1
  bench_target bench_verbs_idle '^armed_here/qp_rate/post_send' added_ns most=80 \
    here-rate-post_send || good=1
  bench_target bench_verbs_idle "$held"poll_cq added_ns most=90 here-held-poll_cq || good=1
  return $good
}

bench() {
  local good=0 program policy chunk name
  bench_pair one-rail-500Mbit --rails 1 --rate 500Mbit --against iperf3 --at-least 0.97 || good=1
  bench_pair unshaped-64MiB --rails 1 --rate unshaped --message $((64 << 20)) --against iperf3 \
    --at-least 0.85 || good=1
  for policy in pull pinned; do
    bench_pair "four-rails-$policy" --rails 4 --rate 500Mbit --policy "$policy" --against one-rail \
      --at-least 0.98 || good=1
  done
  bench_pair lost-rail --rails 4 --rate 500Mbit --policy pull --against one-rail --lose-rail \
    --at-least 0.98 --kept-at-least 0.98 || good=1
  # Three times one rail is 0.75 of four times one. 64 KiB is the default.
  for chunk in 64 256; do
    name=io-threads-chunk-${chunk}KiB
    if (($(nproc) < cores_for_io_threads)); then
      skip bench "bench-$name" "$(nproc) cores, it needs $cores_for_io_threads"
      continue
    fi
    bench_pair "$name" --rails 4 --rate unshaped --io-threads 4 --against one-rail \
      --message $((64 << 20)) --chunk $((chunk << 10)) --at-least 0.75 || good=1
  done
  for program in "${google_benchmarks[@]}"; do
    if [[ ! -x build/tests/$program ]]; then
      skip bench "$program" "not built: it needs Google Benchmark, and the verbs shim libibverbs-dev"
      continue
    fi
    once bench "$program" "build/tests/$program" --benchmark_out="$out/$program.json" \
      --benchmark_out_format=json || good=1
  done
  bench_target bench_reduce '/67108864/' of_memory least=0.8 || good=1
  bench_target bench_schedule '^load/' items_per_second least=10e6 || good=1
  bench_target bench_schedule '^steps$' real_time most=500 || good=1 # ms: 1,024 ranks, 64 segments
  verbs_targets || good=1
  run_scenario bench scenarios/standing-cost.yaml standing-cost || good=1
  once bench many-agents ci/nightly/agents.sh || good=1
  return $good
}

# A room each, so that a run that was broken off goes on with the next. What was killed is kept in
# $out/mutants, and is not done again while its source is the same, by whatever commit.
mutants() {
  local room good=0 at_a_time=$((cores > 1 ? cores / 2 : 1)) # tests have threads of their own
  [[ $force == 1 ]] && rm -rf "${out:?}/mutants"
  for room in auth channel fabric transport nccl injector judging; do
    once mutants "mutants-$room" ci/nightly/mutate.sh -n "$mutants_of_a_room" \
      -j "$at_a_time" -o "$out/mutants" "$room" || good=1
    grep "^$room .*%" "$out/mutants-$room.txt" | sed 's/^/             /' | tee -a "$out/summary.txt"
  done
  return $good
}

sources() {
  local good=0
  once sources clang-tidy ci/tidy.py --all || good=1
  once sources headers ci/check_arrows.py --headers || good=1
  return $good
}

# What was injected against what was found, over all that is there; and all scenarios in one table.
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
  build/faultline report --table "${folders[@]}" >"$out/table.md" || status=$?
  note report table "$status"
  cat "$out/table.md"
  return $status
}

say "build"
targets=(faultline)
for part in "${parts[@]}"; do
  [[ $part == property ]] && targets+=(property_channel property_schedule)
  [[ $part == bench ]] && targets+=(bench_point_to_point)
  [[ $part == sources ]] && targets+=(property_mutants) # has sources that are made
done
configure_and_build release "${targets[@]}" >"$out/build.txt" 2>&1 || {
  tail -n 20 "$out/build.txt" >&2
  exit 1
}
if [[ " ${parts[*]} " == *" bench "* ]]; then # those that need Google Benchmark, where it is
  for program in "${google_benchmarks[@]}"; do
    cmake --build --preset release --target "$program" >>"$out/build.txt" 2>&1 || true
  done
fi

commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
echo "$commit" >"$out/commit.txt"
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
