#!/usr/bin/env bash
# run.sh SAMPLE_REPORT: the browser test, or exit 77 with the reason why it cannot run here.
set -euo pipefail

if ! command -v node >/dev/null; then
  echo "SKIPPED: node is not installed (ci/setup.sh installs it)"
  exit 77
fi
exec node "$(dirname "$0")/report_test.mjs" "$@"
