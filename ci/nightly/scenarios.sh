#!/usr/bin/env bash
# Every night: runs all scenarios of a directory, adds the results to a history, and holds each against
# the nights before it.
#
#   ci/nightly/scenarios.sh [DIRECTORY]     default: scenarios/nightly
#
# Says how many seconds each scenario and all of it took. The last line is "N scenarios good, N not; trend: ...", with the verdict of `faultline history trend`;
# exit code 1 when a scenario was not, or when something got significantly worse than it was in the
# nights before; 2 when nothing was begun. Settings, with their defaults:
#
#   NIGHTLY_OUT=nightly-out        results go to $NIGHTLY_OUT/<date>/<scenario>, the pages to
#                                  $NIGHTLY_OUT/<date>/overview.html and trend.html
#   NIGHTLY_DB=$NIGHTLY_OUT/results.db   the history; keep this file. Its folder is made when missing
#   NIGHTLY_NIGHTS=14              how many nights the newest is held against
#   NIGHTLY_TOLERANCE=2            percent that may be lost before it counts
#   NIGHTLY_ARGUMENTS=             for each run, like "--repeat 6"
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

directory=${1:-scenarios/nightly}
out=${NIGHTLY_OUT:-nightly-out}
database=${NIGHTLY_DB:-$out/results.db}
read -r -a arguments <<<"${NIGHTLY_ARGUMENTS:-}"
night=$out/$(date -u +%Y-%m-%dT%H%M%SZ)

shopt -s nullglob
scenarios=("$directory"/*.yaml)
if ((${#scenarios[@]} == 0)); then
  echo "$0: there is no scenario in $directory" >&2
  exit 2
fi

# Before a quarter of an hour is spent on results that could not be kept. SQLite writes its journal into
# the folder.
folder=$(dirname "$database")
if ! mkdir -p "$folder" || [[ ! -w $folder ]] ||
  [[ -e $database && ! (-f $database && -w $database) ]]; then
  user=$(id -un)
  echo "$0: cannot keep the history in $database: $user must be able to write the file and its folder" \
    "(sudo install -d -o $user $folder), or set NIGHTLY_DB to another file" >&2
  exit 2
fi

mkdir -p "$night"
configure_and_build release faultline >"$night/build.txt" 2>&1 || {
  tail -n 20 "$night/build.txt" >&2
  exit 1
}

good=0
bad=0
results=()
for file in "${scenarios[@]}"; do
  name=$(basename "$file" .yaml)
  status=0 began=$SECONDS
  build/faultline run "$file" --out "$night/$name" --force "${arguments[@]}" >"$night/$name.txt" 2>&1 || status=$?
  echo "$name: exit $status, $((SECONDS - began)) s"
  ((status == 130)) && exit 130
  if ((status == 0)); then good=$((good + 1)); else bad=$((bad + 1)); fi
  # What failed is history too; what could not run has no result.
  [[ -f $night/$name/result.json ]] && results+=("$night/$name")
done

trend=0
said="there is no result"
if ((${#results[@]})); then
  build/faultline report --overview "${results[@]}" --out "$night" >/dev/null
  build/faultline history add "$database" "${results[@]}" || trend=$?
  if ((trend == 0)); then
    build/faultline history trend "$database" --nights "${NIGHTLY_NIGHTS:-14}" \
      --tolerance "${NIGHTLY_TOLERANCE:-2}" --out "$night" >"$night/trend.txt" || trend=$?
    cat "$night/trend.txt"
  fi
  case $trend in
    # The last line but that which says where the page is.
    0 | 1 | 5) said=$(sed '/^report: /d' "$night/trend.txt" | tail -n 1) ;;
    *) said="failed, exit $trend" ;;
  esac
fi
echo "all of it: $SECONDS s"
echo "$good scenarios good, $bad not; trend: $said"
((bad == 0 && (trend == 0 || trend == 5)))
