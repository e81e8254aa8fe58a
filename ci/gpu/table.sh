#!/usr/bin/env bash
# NCCL with and without faultline's plugin, on the GPUs of this machine: one part of the tables of
# docs/gpu.md, in Markdown on the standard output.
#
#   ci/gpu/table.sh --part N [--out DIRECTORY] [--data DIRECTORY]
#
#   1  fault-free sweeps, rails of 4 Gbit/s and as fast as the machine is; all collectives
#   2  pauses: a port goes down, connections are reset, thirty times each; once each with stock NCCL
#   3  pauses: a port swallows everything, thirty times; once with stock NCCL; once for good
#   4  slow and lost rails
#   5  DDP training of a small GPT under faults
#   6  all rails gone; several process groups; PyTorch's AllReduce
#   7  the sweeps of part 1, over four rails of 2 Gbit/s and as fast as the machine is
#   8  pauses over four rails of 2 Gbit/s, thirty of each kind; the protocols LL and LL128 under faults
#   9  pauses with the strategy hot_repair, thirty of each kind
#
# Four ranks in four network namespaces; root, or a user namespace. With fewer GPUs than ranks these
# share them, through NVIDIA's multi-process service, and the tables say so. Builds what it needs, unless
# GPU_BUILD=no; results stay in the directory of --out (default gpu-out). With --data each table is also kept
# there as a data file, from which ci/gpu/page.py makes docs/gpu.md. Python 3 makes the tables, parts 5 and 6
# need PyTorch too. Exit code 1 when an expectation or a target is missed (the tables say which targets,
# and ci/gpu/targets.py has them), 2 for a mistake, 3 when this machine cannot do it.
# GPU_STRATEGIES=socket,stock leaves all other rows out, GPU_REPEAT=7 (default 5, so that each part takes
# less than 8 minutes) makes so many runs of each row of the sweeps up to 8 MiB. While it runs, everybody
# may choose cubic on this machine (net.ipv4.tcp_allowed_congestion_control); one of it at a time.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

readonly ranks=4
part=
out=gpu-out
command="ci/gpu/table.sh${*:+ $*}"
while (($#)); do
  case $1 in
    --data) export GPU_DATA=${2:-} && shift $(($# > 1 ? 2 : 1)) ;;
    --part) part=${2:-} && shift $(($# > 1 ? 2 : 1)) ;;
    --out) out=${2:-} && shift $(($# > 1 ? 2 : 1)) ;;
    *) part= && break ;;
  esac
done
if [[ ! $part =~ ^[1-9]$ || -z $out ]]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
  exit 2
fi
# Before anything is built.
for program in nvidia-smi python3; do
  command -v "$program" >/dev/null || {
    echo "$0: $program is not there" >&2
    exit 3
  }
done
gpus=$(nvidia-smi -L | grep -c '^GPU' || true)
if ((gpus == 0)); then
  echo "$0: there is no GPU" >&2
  exit 3
fi
mps=
allowed_before=
# Puts back what is changed below.
# shellcheck disable=SC2317  # by trap
leave() {
  if [[ -n $mps ]]; then
    echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1 || true
    rm -rf "$mps"
  fi
  [[ -z $allowed_before ]] || echo "$allowed_before" >"$allowed"
}
trap leave EXIT

# The nodes have cubic (cluster.congestion_control), which namespaces may choose where everybody may.
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
cubic_allowed() { [[ ! -r $allowed || " $(<"$allowed") " == *' cubic '* ]]; }
if ! cubic_allowed; then
  modprobe tcp_cubic 2>/dev/null || true
  if [[ -w $allowed ]]; then
    allowed_before=$(<"$allowed")
    echo "$allowed_before cubic" 2>/dev/null >"$allowed" || true
  fi
  cubic_allowed || {
    echo "$0: namespaces may not choose cubic here; as root: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"$(<"$allowed") cubic\"" >&2
    exit 3
  }
fi

mkdir -p "$out"
out=$(cd "$out" && pwd)

if [[ ${GPU_BUILD:-yes} == yes ]]; then
  targets=(faultline nccl_bench)
  cmake --preset release -DFAULTLINE_TESTS=OFF >"$out/build.txt" 2>&1 || {
    tail -n 20 "$out/build.txt" >&2
    exit 3
  }
  cmake --build build --target help | grep -q '^faultline_nccl:' && targets+=(faultline_nccl)
  cmake --build build -j "$cores" --target "${targets[@]}" >>"$out/build.txt" 2>&1 || {
    tail -n 20 "$out/build.txt" >&2
    exit 3
  }
fi
build=${GPU_BUILD_DIRECTORY:-$root/build}
export PATH=$build:$PATH
plugin=$(find "$build" -name libnccl-net-faultline.so -print -quit)
export LD_LIBRARY_PATH=${plugin:+$(dirname "$plugin"):}${LD_LIBRARY_PATH:-}
for program in faultline nccl_bench; do
  command -v "$program" >/dev/null || {
    echo "$0: $program is not there" >&2
    exit 3
  }
done

# Kernels of ranks that share a GPU wait for each other: in turns of milliseconds, unless they run at
# the same time.
if ((gpus < ranks)) && command -v nvidia-cuda-mps-control >/dev/null && [[ -z ${CUDA_MPS_PIPE_DIRECTORY:-} ]]; then
  mps=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY=$mps CUDA_MPS_LOG_DIRECTORY=$mps
  nvidia-cuda-mps-control -d
fi

strategies=${GPU_STRATEGIES:-}
failed=0
# scenario NAME [FOLDER [ARGUMENT...]]: runs scenarios/gpu/NAME.yaml into $out/FOLDER.
scenario() {
  local name=$1 folder=${2:-$1}
  shift $(($# > 1 ? 2 : 1))
  local rows=()
  if [[ -n $strategies ]]; then
    # Of the rows that were asked for, those that the scenario has.
    local list='' there
    there=$(faultline run "scenarios/gpu/$name.yaml" --dry-run | sed -n 's/^run [0-9]*: block [0-9]*, \([^ ]*\) .*/\1/p')
    for row in ${strategies//,/ }; do
      grep -Fxq -- "$row" <<<"$there" && list+=${list:+,}$row
    done
    [[ -z $list ]] && return 0
    rows=(--strategy "$list")
  fi
  local status=0
  faultline run "scenarios/gpu/$name.yaml" --out "$out/$folder" --force "${rows[@]}" "$@" >"$out/$folder.txt" 2>&1 || status=$?
  echo "$folder: exit $status" >&2
  if ((status)); then
    grep -E '^  (FAILS|VOID)|error' "$out/$folder.txt" >&2 || true
    failed=1
  fi
}
# sweep FOLDER [ARGUMENT...]: all sizes, in two results. Runs of short calls differ by a quarter: more of both.
sweep() {
  local folder=$1
  shift
  scenario all-reduce "$folder-to-8M" --repeat "${GPU_REPEAT:-5}" "$@" --set \
    "workload.command.run=[nccl_bench,--gpu,'{rank}',-b,8K,-e,8M,-f,'2',-n,'100',-w,'10',--place,out]"
  scenario all-reduce "$folder-from-16M" "$@" --set \
    "workload.command.run=[nccl_bench,--gpu,'{rank}',-b,16M,-e,256M,-f,'2',-n,'5',-w,'1',--place,out]"
}
# pause SCENARIO KIND: thirty faults of that kind, over four rails.
pause() {
  scenario "$1" "four-$1" --set cluster.rails=4 --set cluster.rail_rate=2Gbit \
    --set "faults=$(python3 ci/gpu/draw_faults.py --seed 7 --in-turn "$2" --faults 30 --rails 4)" \
    --set "workload.command.run=[nccl_bench,--gpu,'{rank}',--each,-b,64M,-n,'280',-w,'2',--place,out,--wait,30s]"
}
# made KIND FOLDER...: the table of those of the results that there are, and whether it reaches its targets.
made() {
  local kind=$1 there=()
  shift
  for folder in "$@"; do [[ -f $out/$folder/result.json ]] && there+=("$out/$folder"); done
  ((${#there[@]} == 0)) || python3 ci/gpu/tables.py "$kind" "${there[@]}" || failed=1
}

version=$(faultline --version 2>/dev/null | head -n 1 || true)
GPU_MACHINE="$(nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c |
  sed 's/^ *\([0-9]*\) /\1 x /' | paste -sd, -), $cores cores"
GPU_COMMIT=$(sed -n 's/.*(\(.*\)).*/\1/p' <<<"$version")
GPU_COMMAND=$command
export GPU_MACHINE GPU_COMMIT GPU_COMMAND
echo "## Part $part: $GPU_MACHINE, $version"
echo
case $part in
  1)
    sweep shaped
    sweep unshaped --set cluster.rail_rate=100Gbit
    scenario collectives
    made sweep {shaped,unshaped}-{to-8M,from-16M}
    made ends {shaped,unshaped}-{to-8M,from-16M} collectives
    made collectives collectives
    ;;
  2)
    scenario pause-port-down
    scenario pause-connection-reset
    scenario port-down
    scenario connection-reset
    made pauses pause-port-down pause-connection-reset port-down connection-reset
    made ends pause-port-down pause-connection-reset port-down connection-reset
    ;;
  3)
    scenario pause-blackhole
    scenario blackhole
    scenario blackhole-lasting
    made pauses pause-blackhole blackhole blackhole-lasting
    made ends pause-blackhole blackhole blackhole-lasting
    ;;
  4)
    scenario slow-rail slow-half
    scenario slow-rail slow-tenth --set faults.0.rate=10%
    scenario lost-rail lost-1-of-2
    scenario lost-rail lost-1-of-4 --set cluster.rails=4 --set cluster.rail_rate=2Gbit
    made shares slow-half slow-tenth lost-1-of-2 lost-1-of-4
    made ends slow-half slow-tenth lost-1-of-2 lost-1-of-4
    ;;
  5)
    scenario ddp
    made ends ddp
    ;;
  6)
    scenario all-rails-gone
    scenario groups
    scenario torch-all-reduce
    made ends all-rails-gone groups
    made sweep torch-all-reduce
    ;;
  7)
    sweep four-shaped --set cluster.rails=4 --set cluster.rail_rate=2Gbit
    sweep four-unshaped --set cluster.rails=4 --set cluster.rail_rate=100Gbit
    made sweep four-{shaped,unshaped}-{to-8M,from-16M}
    made ends four-{shaped,unshaped}-{to-8M,from-16M}
    ;;
  8)
    pause pause-port-down port_down
    pause pause-connection-reset connection_reset
    pause pause-blackhole blackhole
    scenario protocols
    made pauses four-pause-{port-down,connection-reset,blackhole} protocols
    made ends four-pause-{port-down,connection-reset,blackhole} protocols
    ;;
  9)
    for kind in port-down connection-reset blackhole; do
      scenario "pause-$kind" "hot-repair-$kind" --set strategies.0.unprotected.env.FAULTLINE_NET_STRATEGY=hot_repair
    done
    made pauses hot-repair-{port-down,connection-reset,blackhole}
    made ends hot-repair-{port-down,connection-reset,blackhole}
    ;;
esac
exit "$failed"
