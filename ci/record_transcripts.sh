#!/usr/bin/env bash
# Makes the transcripts of tests/data/transcripts anew: runs each of its scenarios, and keeps what the
# result was made of, and the result. docs/transcript.md says what for.
#
#   ci/record_transcripts.sh [NAME...]       all, or those named; wants build/faultline and root
#
# What is told of this machine and its time stays out.
set -euo pipefail

cd "$(dirname "$0")/.."
folder=tests/data/transcripts
names=("$@")
((${#names[@]})) || for file in "$folder"/*.yaml; do names+=("$(basename "$file" .yaml)"); done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in "${names[@]}"; do
  code=0
  build/faultline run "$folder/$name.yaml" --out "$scratch/$name" --quiet \
    --transcript "$scratch/whole.jsonl" || code=$?
  # 1 and 5 are verdicts.
  case $code in 0 | 1 | 5) ;; *) echo "$0: $name: exit code $code" >&2; exit 1 ;; esac
  build/faultline report --transcript "$scratch/whole.jsonl" | cmp - "$scratch/$name/result.json"
  python3 - "$scratch/whole.jsonl" "$folder/$name.jsonl" <<'PYTHON'
import json, sys
with open(sys.argv[1]) as whole, open(sys.argv[2], "w") as kept:
    for text in whole:
        line = json.loads(text)
        if line["line"] == "load":
            continue
        if line["line"] == "experiment":
            line.update(environment={}, started_at="2026-01-01T00:00:00Z")
        kept.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
PYTHON
  build/faultline report --transcript "$folder/$name.jsonl" >"$scratch/result.json"
  mv "$scratch/result.json" "$folder/$name.json"
done
