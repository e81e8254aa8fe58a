#!/usr/bin/env bash
# From a fresh clone to a report: installs what is missing, builds, runs scenarios/quickstart.yaml.
# Arguments go to `faultline run`.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

ci/setup.sh --build-only
configure_and_build release faultline

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
build/faultline run scenarios/quickstart.yaml "$@" | tee "$log" || status=$?
directory=$(head -n 1 "$log")

echo
if [[ -f $directory/report.html ]]; then
  echo "The report is $(realpath "$directory")/report.html: open it in any browser."
else
  echo "There is no report (exit code $status); see the messages above." >&2
fi
exit "$status"
