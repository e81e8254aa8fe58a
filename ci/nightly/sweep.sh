#!/usr/bin/env bash
# AllReduce of all sizes with a part of the network gone, against the ideal, the bound and the model:
# 4 and 8 ranks, one or two degraded ranks, and for each of them a rail that is slowed, or of four
# rails some that are lost. Takes some hours; wants root or a user namespace, iperf3, and a machine
# with nothing else to do.
#
#   ci/nightly/sweep.sh [KIND...]      slowed lost; without one: both
#
# Everything goes into one folder, $SWEEP_OUT (default: sweep-out); a cell that is there already is
# not run again. At the end sweep.md has the table, and the commands that made it. Settings, with
# their defaults:
#
#   SWEEP_RANKS="4 8"             at 400 Mbit per rank up to 4, at 200 above: what two cores can carry.
#                                 "16 32" wants a core for each rank, and 16 GiB
#   SWEEP_DEGRADED="1 2"          degraded ranks: 1, then 3
#   SWEEP_LOST="0 25 50 75"       percent of their bandwidth that is gone
#   SWEEP_STRATEGIES=             names with commas between them, without the scenario's targets of
#                                 speed; empty: those of the scenario
#   SWEEP_SET=                    more settings, as "path=value path=value" without blanks in them
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
faultline=${FAULTLINE:-build/faultline}
out=${SWEEP_OUT:-sweep-out}
kinds=("$@")
((${#kinds[@]})) || kinds=(slowed lost)
readonly rails_lost_of=4

# faults_of KIND LOST DEGRADED: a list in YAML.
faults_of() {
  local kind=$1 lost=$2 degraded=$3 list='' node rail
  for ((node = 1; node < 2 * degraded; node += 2)); do
    if [[ $kind == slowed ]]; then
      ((lost == 0)) ||
        list+="{kind: throttle, rate: $((100 - lost))%, target: {node: $node, rail: 0}, at: 0s, until: end}, "
    else
      for ((rail = 0; rail < rails_lost_of * lost / 100; ++rail)); do
        list+="{kind: port_down, how: carrier, target: {node: $node, rail: $rail}, at: 0s, until: end}, "
      done
    fi
  done
  printf '[%s]' "${list%, }"
}

# The targets of a scenario but the formula's, which is for one slow rank.
without_formula() {
  sed -n '/^expect:/,$s/^  - //p' "$1" | grep -v time_over_formula | paste -sd, -
}

# Of the whole network: a ring is the best there is, and the others are one.
healthy='wrong_elements == 0, balance.cells.large.time_over_ideal <= 1.02'
healthy+=', optcc.cells.large.time_over_best <= 1.03, auto.cells.time_over_best <= 1.05'

mkdir -p "$out"
bad=0
for kind in "${kinds[@]}"; do
  for ranks in ${SWEEP_RANKS:-4 8}; do
    rate=$((ranks > 4 ? 200 : 400))
    [[ $kind == lost ]] && rate=$((rate / rails_lost_of))
    for lost in ${SWEEP_LOST:-0 25 50 75}; do
      for degraded in ${SWEEP_DEGRADED:-1 2}; do
        ((lost == 0 && degraded > 1)) && continue
        name=$kind-p$ranks-x$lost-d$degraded
        [[ -e $out/$name/result.json ]] && continue
        command=("$faultline" run "scenarios/sweep/$kind.yaml" --out "$out/$name"
          --set "name=$name" --set "cluster.nodes=$ranks" --set "cluster.rail_rate=${rate}Mbit"
          --set "faults=$(faults_of "$kind" "$lost" "$degraded")")
        if [[ -n ${SWEEP_STRATEGIES:-} ]]; then
          command+=(--set "strategies=[$SWEEP_STRATEGIES]" --set "expect=[wrong_elements == 0]")
        elif ((lost == 0)); then
          command+=(--set "expect=[$healthy]")
        elif ((degraded > 1)); then
          command+=(--set "expect=[$(without_formula "scenarios/sweep/$kind.yaml")]")
        fi
        for setting in ${SWEEP_SET:-}; do command+=(--set "$setting"); done
        printf '%q ' "${command[@]}" | tee -a "$out/commands.txt"
        echo | tee -a "$out/commands.txt"
        "${command[@]}" >"$out/$name.txt" || { bad=$((bad + 1)); echo "$name: exit $?" >&2; }
      done
    done
  done
done

{
  # shellcheck disable=SC2016
  printf '```\nci/nightly/sweep.sh %s\n```\n\n' "$*"
  "$faultline" report --sweep "$out"
} | tee "$out/sweep.md"
exit $((bad > 0))
