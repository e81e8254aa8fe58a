#!/usr/bin/env bash
# The blocks of docs/launchers.md below a heading, each as it stands there, in a laboratory of three hosts
# (ci/labs/hosts.sh, slurm.sh): how_to.sh PROGRAM HEADING USER. Prints how many have left a result that passes.
set -euo pipefail

readonly program=$1 heading=$2 user=$3
source=$(cd "$(dirname "$0")/../../.." && pwd)
home=$(getent passwd "$user" | cut -d: -f6)
readonly source home
cd "$home"
mkdir bin
ln -s "$program" bin/faultline
ln -s "$source/scenarios" scenarios

awk -v heading="## $heading" '
  /^## / { inside = $0 == heading }
  /^```$/ { block = 0 }
  block { print >("block." count) }
  inside && /^```sh$/ { block = 1; ++count }
' "$source/docs/launchers.md"

passed=0
for block in block.*; do
  rm -rf result
  setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" USER="$user" PATH="$home/bin:$PATH" \
    bash -e "$block" >log 2>&1 || {
    echo "$block: exit code $?" >&2
    cat "$block" log job.log >&2
    exit 1
  }
  [[ -s result/report.html ]]
  grep -Eq '"verdict": ?"pass"' result/result.json
  passed=$((passed + 1))
done
echo "passed $passed"
