#!/usr/bin/env bash
# Everything that this machine can check: builds all, runs all tests, then those of what handles memory
# by itself or lives in other programs again under the address, undefined-behaviour and thread
# sanitizers (of the rest: ci/nightly/run.sh sanitizers). What has changed since $FAULTLINE_BASE (or
# what ci/changed.py takes for it) is read by clang-tidy, as much of it as takes a minute, and its
# headers must compile alone; of all files: ci/nightly/run.sh sources. Skipped tests are listed with
# their reasons. The last line is "N passed, N failed"; exit code 1 when anything failed.
#
#   ci/test.sh          all of that: within 45 minutes from nothing on two cores
#   ci/test.sh quick    for who changes one thing: the format of the sources, the release build, unit
#                       and property tests, and scenarios/quickstart.yaml in network namespaces
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

# What the two cores are given to, in order: the release build, which everything waits for; the quick
# tests; the slow tests, one at a time, most of which sleep; the tests under sanitizers. What else is
# to be built fills the gaps from the end of the release build on, in the idle scheduling class, which
# gives its processor up to whatever else wants it. So the whole takes about as long as its processor
# seconds divided by the cores: to make it shorter, save some of those. The benchmarks come last: no
# test waits for them.

what=${1:-all}
if [[ ! $what =~ ^(all|quick)$ ]] || (($# > 1)); then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' ci/test.sh >&2
  exit 2
fi

# How many seconds each part may take, 45 minutes in all: set-up with the release build, unit tests,
# tests in network namespaces, those in guests, all of the sanitizers that is not done meanwhile, and
# the rest. Told beside what they took, and no failure, since machines are busy.
if [[ $what == all ]]; then
  readonly parts=(build unit netns guests sanitizers other)
  declare -A budget=([build]=720 [unit]=270 [netns]=960 [guests]=260 [sanitizers]=430 [other]=60)
else
  readonly parts=(build unit netns)
  declare -A budget=([build]=150 [unit]=210 [netns]=120)
fi
declare -A used=()

# After so long clang-tidy is given no further files: a change of some twenty is done in half of it.
readonly tidy_seconds=45

passed=0
failed=0
skipped=""
failures=""
steps=""       # a line for each, "BEGAN SECONDS NAME"
builds_took="" # the same of what was built in the background
slowest=""     # a line for each test, "SECONDS NAME"
readonly most_slow=10

part=build
step=""
step_began=0
end_step() {
  [[ -n $step ]] || return 0
  steps+="$step_began $((SECONDS - step_began)) $step"$'\n'
  used[$part]=$((${used[$part]:-0} + SECONDS - step_began))
  step=""
}

say() {
  end_step
  step=$* step_began=$SECONDS
  printf '\n=== %s (%d s)\n' "$*" "$SECONDS"
}

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
  slowest+=$(sed -n "s/.*<testcase name=\"\([^\"]*\)\".* time=\"\([0-9.]*\)\".*/\2 $name \1/p" "$file")$'\n'
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

# look_at NAME COMMAND...: a check that is no ctest test. It exits with 3 or 77 where this machine cannot
# make it, and says why.
look_at() {
  local name=$1 status=0 said
  shift
  say "check: $name"
  said=$("$@" 2>&1) || status=$?
  echo "$said"
  case $status in
    0)
      passed=$((passed + 1))
      skipped+=$(sed -n "s/^not looked at: /$name: /p" <<<"$said")$'\n'
      ;;
    3 | 77) skipped+="$name: $(tail -n 1 <<<"$said")"$'\n' ;;
    *) fail "$name (see above)" ;;
  esac
}

# Where there is no idle scheduling class, each is built when it is wanted.
idle=()
if chrt --idle 0 true 2>/dev/null; then
  idle=(chrt --idle 0)
fi
builds=(asan tsan) # in this order

# build WHAT: what it prints goes into a file, and when it ended, into another one, its exit code,
# when it began and when it ended.
build() {
  local what=$1 status=0 began=$SECONDS
  case $what in
    benchmarks)
      "${idle[@]}" cmake --build --preset release --target benchmarks -j "$cores"
      ;;
    *)
      "${idle[@]}" cmake --preset "$what" &&
        "${fixed_addresses[@]}" "${idle[@]}" cmake --build --preset "$what" -j "$cores"
      ;;
  esac >"build-ci-$what.log" 2>&1 || status=$?
  echo "$status $began $SECONDS" >"build-ci-$what.part"
  mv "build-ci-$what.part" "build-ci-$what.status"
}

build_all() {
  local what
  for what in "${builds[@]}"; do build "$what"; done
}

background=""
build_meanwhile() {
  rm -f build-ci-*.{log,status,part}
  ((${#idle[@]})) || return 0
  set -m # a process group of its own, so that all of it can be ended
  build_all &
  background=$!
  set +m
}
end_background() {
  [[ -z $background ]] || kill -- "-$background" 2>/dev/null || true
}
scratch=""
leave() {
  end_background
  [[ -z $scratch ]] || rm -rf "$scratch"
}
trap leave EXIT

# await WHAT: until that is built, and shows how; false when it is not built.
await() {
  local what=$1 status=1 began=0 ended=0
  say "build: $what"
  if [[ -n $background ]]; then
    while [[ ! -e build-ci-$what.status ]] && kill -0 "$background" 2>/dev/null; do sleep 1; done
  else
    build "$what"
  fi
  cat "build-ci-$what.log" || true
  read -r status began ended <"build-ci-$what.status" || true
  builds_took+="$began $((ended - began)) $what"$'\n'
  rm -f "build-ci-$what".{log,status}
  ((status == 0)) || fail "the build of $what"
  return "$status"
}

say "set-up"
ci/setup.sh

# begin PART: what the next steps count for.
begin() {
  end_step
  part=$1
}

test_quickly() {
  begin unit
  look_at format ci/check_format.sh
  begin build
  say "build: release"
  if ! configure_and_build release unit_and_property faultline; then
    fail "the release build"
    return
  fi
  begin unit
  run_tests release quick -L 'unit|property' -j "$cores"
  begin netns
  say "run: scenarios/quickstart.yaml"
  local status=0
  scratch=$(mktemp -d)
  build/faultline run scenarios/quickstart.yaml --out "$scratch/result" || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    3) skipped+="scenarios/quickstart.yaml: not on this machine (see above)"$'\n' ;;
    *) fail "scenarios/quickstart.yaml: exit code $status" ;;
  esac
}

test_all() {
  say "build: release"
  if configure_and_build release; then
    builds+=(benchmarks)
    build_meanwhile
    begin unit
    run_tests release quick -L 'unit|property|cli|fuzz' -j "$cores"
    # One at a time: these measure, or take the whole machine.
    begin netns
    run_tests release netns -L netns
    begin guests
    run_tests release guests -L rdma
    begin other
    run_tests release other -LE 'unit|property|cli|fuzz|netns|rdma'
    look_at "clang-tidy of what has changed" ci/tidy.py --seconds "$tidy_seconds"
    look_at "headers that have changed" ci/check_arrows.py --changed-headers
  else
    fail "the release build"
    build_meanwhile
  fi
  local one
  for one in "${builds[@]}"; do
    begin sanitizers
    [[ $one != benchmarks ]] || begin other
    await "$one" || continue
    [[ $one == benchmarks ]] || run_tests "$one" "$one" -j "$cores"
  done
  background=""
}

if [[ $what == quick ]]; then
  test_quickly
else
  test_all
fi

say "result"
if [[ -n ${skipped//$'\n'/} ]]; then
  echo "skipped:"
  grep . <<<"$skipped" | sed 's/^/  /'
fi
if [[ -n ${failures//$'\n'/} ]]; then
  echo "failed:"
  grep . <<<"$failures" | sed 's/^/  /'
fi
echo "seconds: begin, length, step; below, what was built meanwhile:"
printf '%s%s' "$steps" "$builds_took" | awk '{
  printf "%7d %5d ", $1, $2; $1 = $2 = ""; print substr($0, 3) }'
# beside NAME SECONDS BUDGET
beside() {
  local note=""
  (($2 <= $3)) || note=": MORE THAN ITS BUDGET"
  printf '%-12s %5d of %5d%s\n' "$1" "$2" "$3" "$note"
}
echo "seconds by part:"
whole=0
for one in "${parts[@]}"; do
  beside "$one" "${used[$one]:-0}" "${budget[$one]}"
  whole=$((whole + budget[$one]))
done
beside whole "$SECONDS" "$whole"
echo "the slowest tests, in seconds:"
grep . <<<"$slowest" | sort -rn | awk -v most="$most_slow" \
  'NR <= most { printf "%9.1f %s %s\n", $1, $2, $3 }'
echo "$passed passed, $failed failed"
((failed == 0))
