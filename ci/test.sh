#!/usr/bin/env bash
# Everything that this machine can check: builds all, runs all tests, then those of what handles memory
# by itself or lives in other programs again under the address, undefined-behaviour and thread
# sanitizers (of the rest: ci/nightly/run.sh sanitizers). Skipped tests are listed with
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

# What the sanitizers test is built while the timed tests run, which sleep most of the time: in the
# idle scheduling class, which gives its processor up to whatever else wants it.
idle=()
if chrt --idle 0 true 2>/dev/null; then
  idle=(chrt --idle 0)
fi
sanitizers=(asan tsan)

# build_sanitized: all of them; what they print and their exit codes go into files.
build_sanitized() {
  local sanitizer status
  for sanitizer in "${sanitizers[@]}"; do
    status=0
    { cmake --preset "$sanitizer" &&
      "${fixed_addresses[@]}" "${idle[@]}" cmake --build --preset "$sanitizer" -j "$cores"; } \
      >"build-ci-$sanitizer.log" 2>&1 || status=$?
    echo "$status" >"build-ci-$sanitizer.status"
  done
}

background=""
build_sanitized_meanwhile() {
  set -m # a process group of its own, so that all of it can be ended
  build_sanitized &
  background=$!
  set +m
}
end_background() {
  [[ -z $background ]] || kill -- "-$background" 2>/dev/null || true
}
trap end_background EXIT

say "set-up"
ci/setup.sh

say "build: release"
if configure_and_build release; then
  run_tests release quick -L 'unit|property|cli|fuzz' -j "$cores"
  ((${#idle[@]} == 0)) || build_sanitized_meanwhile
  # One at a time: these measure, or take the whole machine.
  run_tests release slow -LE 'unit|property|cli|fuzz'
  say "build: benchmarks"
  cmake --build --preset release --target benchmarks -j "$cores" || fail "the build of the benchmarks"
else
  fail "the release build"
fi

say "build: ${sanitizers[*]}"
if [[ -n $background ]]; then
  wait "$background" || true
  background=""
else
  build_sanitized
fi
for sanitizer in "${sanitizers[@]}"; do
  cat "build-ci-$sanitizer.log"
  if [[ $(<"build-ci-$sanitizer.status") == 0 ]]; then
    run_tests "$sanitizer" "$sanitizer" -j "$cores"
  else
    fail "the $sanitizer build"
  fi
  rm -f "build-ci-$sanitizer.log" "build-ci-$sanitizer.status"
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
