#!/usr/bin/env bash
# Everything that this machine can check: builds all, runs all tests, then the unit and property tests
# again under the address, undefined-behaviour and thread sanitizers. Skipped tests are listed with
# their reasons. The last line is "N passed, N failed"; exit code 1 when anything failed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

passed=0
failed=0
skipped=""
failures=""

say() { printf '\n=== %s (%d s)\n' "$*" "$SECONDS"; }

# attribute FILE NAME: a number from the head of a JUnit file that ctest wrote.
attribute() {
  grep -o -m 1 "[[:space:]]$2=\"[0-9]*\"" "$1" | head -n 1 | grep -o '[0-9]*'
}

# count FILE NAME: adds the file's numbers up; a file that is not there is one failure.
count() {
  local file=$1 name=$2
  if [[ ! -s $file ]]; then
    fail "$name: ctest wrote no result"
    return
  fi
  local tests bad off skips
  tests=$(attribute "$file" tests)
  bad=$(attribute "$file" failures)
  off=$(attribute "$file" disabled)
  skips=$(attribute "$file" skipped)
  passed=$((passed + tests - bad - off - skips))
  failed=$((failed + bad))
  skipped+=$(awk -f ci/skips.awk "$file" | sed "s/^/$name /")$'\n'
  failures+=$(awk -f ci/failures.awk "$file" | sed "s/^\([^ ]\)/$name \1/")$'\n'
}

fail() {
  failed=$((failed + 1))
  failures+="$1"$'\n'
}

# run_tests PRESET NAME CTEST_ARGUMENT...: never stops the script; `count` sees what happened.
run_tests() {
  local preset=$1 name=$2
  shift 2
  local junit="$root/build-ci-$name.xml"
  rm -f "$junit"
  say "test: $name"
  "${fixed_addresses[@]}" ctest --preset "$preset" --output-junit "$junit" --no-tests=error \
    --progress "$@" || true
  count "$junit" "$name"
  rm -f "$junit"
}

# ThreadSanitizer of older compilers cannot start under the address layout of newer kernels; where
# allowed, the layout is fixed (also while building: test programs are started to list their cases).
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
  fixed_addresses=(setarch "$(uname -m)" -R)
fi

say "set-up"
ci/setup.sh

say "build: release"
if configure_and_build release; then
  run_tests release quick -L 'unit|property|cli|fuzz' -j "$cores"
  # One at a time: these measure, or take the whole machine.
  run_tests release slow -LE 'unit|property|cli|fuzz'
  say "build: benchmarks"
  cmake --build --preset release --target benchmarks -j "$cores" || fail "the build of the benchmarks"
else
  fail "the release build"
fi

for sanitizer in asan tsan; do
  say "build: $sanitizer"
  if cmake --preset "$sanitizer" &&
    "${fixed_addresses[@]}" cmake --build --preset "$sanitizer" -j "$cores"; then
    run_tests "$sanitizer" "$sanitizer" -j "$cores"
  else
    fail "the $sanitizer build"
  fi
done

say "result"
if [[ -n ${skipped//$'\n'/} ]]; then
  echo "skipped:"
  grep . <<<"$skipped" | sed 's/^/  /'
fi
if [[ -n ${failures//$'\n'/} ]]; then
  echo "failed:"
  grep . <<<"$failures" | sed 's/^/  /'
fi
echo "$passed passed, $failed failed"
((failed == 0))
