#!/usr/bin/env bash
# run.sh SAMPLE_REPORT: traces in Perfetto's own trace processor, or exit 77 with the reason why not here.
set -euo pipefail

folder=${FAULTLINE_TRACE_PROCESSOR:-}
if [[ -z $folder ]]; then
  echo "SKIPPED: FAULTLINE_TRACE_PROCESSOR names no folder with trace_processor.wasm (docs/report.md has how to get one)"
  exit 77
fi
if ! command -v node >/dev/null; then
  echo "SKIPPED: node is not installed (ci/setup.sh installs it)"
  exit 77
fi
exec node "$(dirname "$0")/check_test.mjs" "$folder" "$@"
