#!/usr/bin/env bash
# Light agents on this machine, with one controller: they start, say what their host and clock are like, and end.
#
#   ci/nightly/agents.sh [AGENTS]    512 without a number
#
# Prints the time, and the memory of one agent and of all. Exit code 1 when that takes more than 60 s, or when
# one cannot be used, or something of it is left.
set -euo pipefail

readonly most_seconds=60
agents=${1:-512}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
names=$(seq -s ', ' -f 'h%g' 1 "$agents")
echo "cluster: {kind: hosts, launcher: local, hosts: [$names]}" >"$folder/cluster.yaml"

# Of this run: they are found by what they inherit.
export FAULTLINE_AGENTS_OF=$folder
left() {
  local environment count=0
  for environment in /proc/[0-9]*/environ; do
    if [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$(basename "$(dirname "$environment")")/cmdline") == *"agent --stdio"* ]] &&
      grep -qzxF "FAULTLINE_AGENTS_OF=$folder" "$environment" 2>/dev/null; then
      count=$((count + 1))
    fi
  done
  echo "$count"
}

begin=${EPOCHREALTIME/./}
status=0
"$root/build/faultline" doctor --cluster "$folder/cluster.yaml" --json >"$folder/look.json" || status=$?
took=$(((${EPOCHREALTIME/./} - begin) / 1000))
[[ -s $folder/look.json ]] || exit 1 # it has said why
python3 - "$folder/look.json" "$took" <<'END'
import json
import sys

hosts = json.load(open(sys.argv[1], encoding="utf-8"))["hosts"]
usable = [host for host in hosts if host["usable"]]
memory = [host["agent_memory_bytes"] / 2**20 for host in usable] or [0]
print(f"{len(usable)} of {len(hosts)} agents started, answered and ended in {int(sys.argv[2]) / 1000:.1f} s")
print(f"memory of its own: {max(memory):.1f} MiB of one agent, {sum(memory):.0f} MiB of all")
END
remaining=$(left)
((remaining == 0)) || echo "$remaining agents are left" >&2
((status == 0 && remaining == 0 && took <= most_seconds * 1000))
