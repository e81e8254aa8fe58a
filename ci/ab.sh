#!/usr/bin/env bash
# Is NEW slower than OLD? Builds both, measures them in turns, and prints the ratio of each measure.
#
#   ci/ab.sh OLD NEW [PART...]     parts: channel sweep gpu; without one: channel sweep
#
# OLD and NEW are commits, or folders that hold a checkout as it is to be built. The first of each pair changes
# from pair to pair, so that a machine that becomes slower favours none. A ratio is the new time (or processor
# time, or the inverse of a rate) over the old one: above 1 is worse. Exit code 1 when the median ratio of a
# measure is above AB_LIMIT, 2 for a mistake, 3 when this machine cannot do it.
#
#   channel   throughput and processor time per GiB over one unshaped rail, round trip of 8 bytes, the pause of a
#             failover (root, or a user namespace)
#   sweep     AllReduce of two sizes with a slow rail, strategies balance and optcc
#   gpu       AllReduce of NCCL with the plugin, from 8 KiB to 64 MiB, two unshaped rails (a GPU, NCCL, CUDA)
#
# Settings: AB_PAIRS=10, AB_LIMIT=1.03, AB_OUT=DIRECTORY (keeps what was measured), AB_BUILDS=DIRECTORY (keeps
# the two builds; default /tmp/faultline-ab). Wants a machine with nothing else to do.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
  exit 2
}
(($# >= 2)) || usage
old=$1 new=$2
shift 2
parts=("$@")
((${#parts[@]})) || parts=(channel sweep)
for part in "${parts[@]}"; do
  [[ $part =~ ^(channel|sweep|gpu)$ ]] || usage
done
pairs=${AB_PAIRS:-10}
limit=${AB_LIMIT:-1.03}
builds=${AB_BUILDS:-/tmp/faultline-ab}
if [[ ! $pairs =~ ^[1-9][0-9]*$ ]]; then
  echo "$0: AB_PAIRS=$pairs is no number of pairs" >&2
  exit 2
fi
for program in python3 cmake git; do
  command -v "$program" >/dev/null || {
    echo "$0: $program is not there" >&2
    exit 3
  }
done

has() { [[ " ${parts[*]} " == *" $1 "* ]]; }

scratch=$(mktemp -d)
worktrees=()
# shellcheck disable=SC2317  # by trap
leave() {
  rm -rf "$scratch"
  local tree
  for tree in "${worktrees[@]}"; do git worktree remove --force "$tree" 2>/dev/null || true; done
}
trap leave EXIT
out=${AB_OUT:-$scratch}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# tree_of WHAT: sets `tree` to a folder with that source; a commit gets a worktree, which is removed at the end.
tree_of() {
  local commit
  if [[ -d $1 ]]; then
    tree=$(cd "$1" && pwd)
    return
  fi
  commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
    echo "$0: $1 is neither a commit nor a folder" >&2
    exit 2
  }
  tree=$builds/$commit
  git worktree prune
  [[ -e $tree/.git ]] || git worktree add --quiet --detach "$tree" "$commit"
  # A worktree that somebody else made there stays.
  [[ -n ${AB_BUILDS:-} ]] || worktrees+=("$tree")
}

# build TREE: what the parts need of it, into TREE/build.
build() {
  local targets=(faultline) settings=()
  has channel && targets+=(bench_point_to_point bench_ping_pong)
  if has gpu; then
    targets+=(nccl_bench faultline_nccl)
    has channel || settings=(-DFAULTLINE_TESTS=OFF)
  fi
  echo "building $1" >&2
  (cd "$1" && cmake --preset release "${settings[@]}" && cmake --build build -j "$cores" --target "${targets[@]}") \
    >"$scratch/build.txt" 2>&1 || {
    tail -n 20 "$scratch/build.txt" >&2
    exit 3
  }
}

# numbers_of RESULT pauses|calls: prints a line for each measure that it finds in result.json.
numbers_of() {
  python3 - "$@" <<'PYTHON'
import json, statistics, sys
result = json.load(open(sys.argv[1] + "/result.json"))
what = sys.argv[2]
if what == "pauses":
    pauses = [f["pause_ms"] for run in result["runs"] for f in run["failovers"]]
    print("failover_pause", statistics.median(pauses), "lower")
elif what == "calls":
    found = {}
    for run in result["runs"]:
        for row in run["collectives"]:
            if row["p50_ms"]:
                found.setdefault((run["strategy"], row["size_bytes"]), []).append(row["p50_ms"])
    for (strategy, size), times in sorted(found.items()):
        print(f"{strategy}_{size}", statistics.median(times), "lower")
PYTHON
}

# Each measure_PART TREE prints lines "NAME VALUE higher|lower".
measure_channel() {
  "$1"/build/tests/bench_point_to_point --rails 1 --rate unshaped --against one-rail --rounds 1 --seconds 1 |
    awk '/^ +1 / { print "throughput", $2, "higher"; print "cpu_per_GiB", $5, "lower" }'
  "$1"/build/tests/bench_ping_pong --rounds 3 --seconds 0.3 | awk '/^median/ { print "round_trip", $2, "lower" }'
  rm -rf "$scratch/run"
  "$1"/build/faultline run "$scratch/pauses.yaml" --out "$scratch/run" >"$scratch/run.txt" 2>&1
  numbers_of "$scratch/run" pauses
}

measure_sweep() {
  rm -rf "$scratch/run"
  "$1"/build/faultline run scenarios/sweep/slowed.yaml --strategy balance,optcc --out "$scratch/run" \
    --set workload.collective.sizes='[256KiB, 8MiB]' --set workload.iterations=5 --set expect='[wrong_elements == 0]' \
    >"$scratch/run.txt" 2>&1
  numbers_of "$scratch/run" calls
}

measure_gpu() {
  rm -rf "$scratch/run"
  local plugin
  plugin=$(find "$1/build" -name libnccl-net-faultline.so -print -quit)
  PATH=$1/build:$PATH LD_LIBRARY_PATH=$(dirname "$plugin"):${LD_LIBRARY_PATH:-} \
    "$1"/build/faultline run scenarios/gpu/all-reduce.yaml --strategy plugin --repeat 1 --out "$scratch/run" \
    --set cluster.rail_rate=100Gbit \
    --set cluster.congestion_control="$(</proc/sys/net/ipv4/tcp_congestion_control)" --set \
    "workload.command.run=[nccl_bench,--gpu,'{rank}',-b,8K,-e,64M,-f,'8',-n,'50',-w,'5',--place,out]" \
    >"$scratch/run.txt" 2>&1
  awk '$1 ~ /^[0-9]+$/ && NF >= 9 { print "allreduce_" $1, $6, "lower" }' "$scratch"/run/command-plugin-0/rank0/stdout.txt
}

# measured PAIR WHICH TREE: adds what was measured to the file of all.
measured() {
  local part values
  for part in "${parts[@]}"; do
    if ! values=$("measure_$part" "$3") || [[ -z $values ]]; then
      echo "$0: $part could not be measured with $3:" >&2
      tail -n 20 "$scratch/run.txt" >&2 || true
      exit 3
    fi
    awk -v part="$part" -v pair="$1" -v which="$2" 'NF == 3 { print part, $1, pair, which, $2, $3 }' <<<"$values" \
      >>"$out/measured.txt"
  done
}

cat >"$scratch/pauses.yaml" <<'YAML'
version: 1
name: ab-pauses
cluster: {kind: netns, nodes: 2, rails: 2, rail_rate: 400Mbit}
workload:
  kind: training
  iterations: 40
  compute: 5ms
  gradient: {size: 4MiB, buckets: 2}
strategies: [hot_repair]
faults:
  - {kind: port_down, target: {node: 1, rail: 0}, during: {iteration: 10, progress: 50%}, duration: 300ms}
repeat: 2
seed: 7
YAML

tree_of "$old"
old_tree=$tree
tree_of "$new"
new_tree=$tree
build "$old_tree"
build "$new_tree"
: >"$out/measured.txt"
for ((pair = 1; pair <= pairs; ++pair)); do
  echo "pair $pair of $pairs" >&2
  if ((pair % 2)); then
    measured "$pair" old "$old_tree"
    measured "$pair" new "$new_tree"
  else
    measured "$pair" new "$new_tree"
    measured "$pair" old "$old_tree"
  fi
done
awk -v limit="$limit" -f ci/ab.awk "$out/measured.txt"
