#!/usr/bin/env bash
# Do the tests notice when the code is wrong? Makes small edits (ci/nightly/mutants.awk), one at a
# time, and runs the tests of the room: an edit that no test notices is a survivor, and a test that
# is missing. Ends with a table of all rooms and the survivors by line; exit 1 when fewer than 95 % of
# a room's mutants were killed, or a survivor is explained nowhere.
#
#   ci/nightly/mutate.sh [-n COUNT] [-s SEED] [-j JOBS] [-b BUILD] [-o OUT] [-f REGEX] [ROOM...]
#
#   -n  mutants of each room (60)             -s  seed by which they are chosen (1)
#   -j  mutants at a time (1)                 -b  folder to build in (build-mutants)
#   -o  folder of the results (mutants-out)   -f  only those whose "FILE:LINE KIND" matches
#
# Rooms: auth channel fabric transport nccl injector judging; without one: all. The checkout is never
# changed: the edited copy of a source is compiled aside, and linked in front of the libraries, so
# that a mutant costs one file and one or two programs. What was killed before by the same edit of the
# same file is not done again. Survivors that are no missing test are explained in
# ci/nightly/mutants_explained.txt. An edit that does not compile, or that no program can see, is no
# mutant; one with which the tests take far too long is killed.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

count=60 seed=1 jobs=1 build=build-mutants out=mutants-out filter=.
while getopts n:s:j:b:o:f: option; do
  case $option in
    n) count=$OPTARG ;; s) seed=$OPTARG ;; j) jobs=$OPTARG ;;
    b) build=$OPTARG ;; o) out=$OPTARG ;; f) filter=$OPTARG ;;
    *) sed -n '6,11s/^# \?//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
all_rooms=(auth channel fabric transport nccl injector judging)
rooms=("$@")
((${#rooms[@]})) || rooms=("${all_rooms[@]}")

# sources_of ROOM: what is edited. Not what only a shared library has that tests load from its place.
sources_of() {
  case $1 in
    auth | channel | fabric | transport) find "resilient_ccl/$1" -name '*.cc' ;;
    nccl) find resilient_ccl/nccl -maxdepth 1 -name '*.cc' ! -name plugin.cc ;;
    injector) find injector -name '*.cc' ! -path 'injector/verbs/shim/*' ;;
    judging)
      find reports -maxdepth 1 -name '*.cc'
      find harness/record harness/analysis -name '*.cc'
      ;;
    *) echo "no such room: $1 (${all_rooms[*]})" >&2; return 2 ;;
  esac | sort
}

# programs_of ROOM [FILE]: its test programs, first the one that most likely notices an edit of FILE.
programs_of() {
  case $1 in
    auth) echo "unit_auth" ;;
    channel) printf '%s\n' "unit_channel" "property_channel" ;;
    fabric) printf '%s\n' "unit_fabric" "property_fabric" "netns_fabric" ;;
    transport) printf '%s\n' "unit_transport" "unit_fabric" "netns_fabric" ;;
    nccl) printf '%s\n' "unit_nccl" ;;
    injector) printf '%s\n' "unit_injector" "unit_rdma" "unit_verbs" "netns_injector" ;;
    judging)
      case ${2:-} in
        reports/*) printf '%s\n' "unit_reports" "unit_analysis" ;;
        harness/record/*) printf '%s\n' "unit_record" "unit_analysis" ;;
        *) printf '%s\n' "unit_analysis" "unit_record" "unit_reports" ;;
      esac
      ;;
  esac
}

for room in "${rooms[@]}"; do sources_of "$room" >/dev/null; done
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT

# What runs just now, as kill(1) is told: a test program, or the group of those at work on mutants.
# Each is a group of its own, and none is left when this script is stopped.
running=
stop() {
  trap '' INT TERM
  if [[ -n $running ]]; then
    kill -TERM -- "$running" 2>/dev/null || true
    wait
    while kill -0 -- "$running" 2>/dev/null; do sleep 0.1; done # those whom wait does not know
  fi
  exit 130
}
trap stop INT TERM

# Properties of seeds are looked at with few of them, as under sanitizers: a mutant that needs thousands
# is for the planted bugs of the channel (docs/channel_tests.md).
export FAULTLINE_SEEDS=${FAULTLINE_SEEDS:-500} CCACHE_DISABLE=1

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFAULTLINE_WERROR=OFF \
  -DCMAKE_UNITY_BUILD=OFF "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g0" >/dev/null
build=$(cd "$build" && pwd)
mapfile -t targets < <(for room in "${rooms[@]}"; do programs_of "$room"; done | sort -u)
env -u CCACHE_DISABLE cmake --build "$build" -j "$cores" --target "${targets[@]}" >"$out/build.txt" ||
  { tail -n 20 "$out/build.txt" >&2; exit 2; }

# Random bytes that the seed decides.
random_bytes() {
  openssl enc -aes-128-ctr -pass "pass:$seed" -nosalt -pbkdf2 -iter 1 </dev/zero 2>/dev/null
}

# choose COUNT: of the mutants on stdin those whose line, place in it and edit come first by a hash
# that the seed decides. So most are the same after a change of the sources.
choose() {
  awk -F '\t' -v OFS='\t' '
    $1 != file { file = $1; n = 0; while ((getline line < file) > 0) text[++n] = line; close(file) }
    { key = file " " text[$2] " " $3 " " $4 " " $6; gsub(/\t/, " ", key); print key, $0 }' |
    LC_ALL=C sort -R -t $'\t' -k 1,1 --random-source=<(random_bytes) | cut -f 2- | sed -n "1,$1p"
}

# run_program DIRECTORY PROGRAM SECONDS [FILTER]: whether all of its tests, or those that the filter
# names, are good; $DIRECTORY/tests.txt.
run_program() {
  local status=0
  set -m # not ignoring Ctrl-C, which tests may be about
  # Files of its own: tests of another mutant may run at the same time.
  (cd "$build/tests" && export TEST_TMPDIR=$1 &&
    exec timeout -k 5 "$3" "$1/$2" --gtest_fail_fast --gtest_brief=1 --gtest_filter="${4:-*}") \
    >"$1/tests.txt" 2>&1 9>&- &
  running=$!
  set +m
  wait "$running" 2>/dev/null || status=$? # a crash is no news
  running=
  return "$status"
}

# failed_test DIRECTORY: the one at which the program has stopped; false where none has failed.
failed_test() { grep -m 1 -oP '\[  FAILED  \] \K[^ ,(]+' "$1/tests.txt"; }

# run_surely DIRECTORY PROGRAM SECONDS: as run_program. Of the programs that use network namespaces
# one runs at a time, as with ctest, and a test of theirs must fail three times: on a busy machine
# some fail that look at rates.
run_surely() {
  [[ $2 == netns_* ]] || { run_program "$@"; return; }
  local status=0 test but=
  exec 9>>"$work/netns.lock"
  flock 9
  while status=0; run_program "$@" "*-$but" || status=$?; ((status)); do
    ((status != 124 && status != 137)) || break
    test=$(failed_test "$1") || break
    ! run_program "$@" "$test" && ! run_program "$@" "$test" && break
    but+=:$test
  done
  exec 9>&-
  return "$status"
}

# How long the programs take as they are, which must be good.
for program in "${targets[@]}"; do
  begin=$SECONDS
  run_surely "$build/tests" "$program" 900 || {
    echo "$program fails as it is:" >&2
    grep -m 5 FAILED "$build/tests/tests.txt" >&2 || true
    exit 2
  }
  # Four times as long on a busy machine is no sign of a mutant.
  echo $((4 * (SECONDS - begin) + 20)) >"$work/$program.limit"
done

# try ROOM MUTANT-LINE: a line of the result.
try() {
  local room=$1 file line column length kind replacement
  IFS=$'\t' read -r file line column length kind replacement <<<"$2"
  local original mutated key verdict="" begin=$SECONDS
  original=$(sed -n "${line}p" "$file")
  mutated=${original:0:column - 1}$replacement${original:column - 1 + length}
  key=$(printf '%s\n' "$(md5sum <"$file")" "$2" | md5sum | cut -c 1-16)
  local place="$file:$line" change="${original:column-1:length} -> $replacement"
  [[ $kind == leave ]] && change="$(sed 's/^ *//' <<<"$original") -> nothing is done"
  if [[ -f $out/done/$key ]]; then
    cat "$out/done/$key"
    return
  fi
  local mine
  mine=$(mktemp -d "$work/XXXXXX")
  mkdir -p "$mine/$(dirname "$file")"
  printf '%s\n' "$mutated" >"$mine/line"
  awk -v line="$line" -v with="$mine/line" \
    'NR == line { getline text < with; print text; next } { print }' "$file" >"$mine/$file"
  # The object that this source becomes in the library of its folder, compiled from the edited copy.
  local object command
  object=$(grep -P "^\Q$root/$file\E\t\Q$(dirname "$file")\E/CMakeFiles/" "$work/objects" | cut -f 2)
  command=$(ninja -C "$build" -t commands -s "$object" |
    sed -e "s# -c $root/$file# -I$root/$(dirname "$file") -c $mine/$file#" -e "s# -o $object# -o $mine/mutant.o#" \
      -e 's# -M[TF] [^ ]*##g' -e 's# -MD##' -e 's# -Werror # #')
  if ! (cd "$build" && eval "$command") >"$mine/compile.txt" 2>&1; then
    verdict="no mutant"
  fi
  local program library tried=0
  library=${object##*CMakeFiles/}
  library=lib${library%%.dir/*}.a
  for program in $(programs_of "$room" "$file"); do
    [[ -z $verdict ]] || break
    # In front of the library that has the original of the object, which is then left out. A program
    # without that library says nothing about it.
    command=$(ninja -C "$build" -t commands -s "tests/$program" |
      sed -e 's/^: && //' -e 's/ && .*//' -e "s# -o tests/$program # $mine/mutant.o -o $mine/$program #")
    [[ $command == *"/$library"* ]] || continue
    tried=1
    if ! (cd "$build" && eval "$command") >"$mine/link.txt" 2>&1; then
      verdict="no mutant"
      break
    fi
    local status=0
    run_surely "$mine" "$program" "$(cat "$work/$program.limit")" || status=$?
    if ((status == 124 || status == 137)); then
      verdict="killed by time ($program)"
    elif ((status != 0)); then
      verdict="killed by $(failed_test "$mine" || echo "$program, exit $status")"
    fi
  done
  ((tried)) || verdict="no mutant"
  if [[ -z $verdict ]]; then
    verdict=survived
    local text
    text=$(sed 's/^ *//' <<<"$original")
    local reason
    reason=$(awk -F ' [|] ' -v file="$file" -v text="$text" -v kind="$kind" \
      '$1 == file && index(text, $2) == 1 && ($3 == kind || $3 == "any") { print $4; exit }' \
      ci/nightly/mutants_explained.txt)
    case $reason in "") ;; equivalent:*) verdict=equivalent ;; *) verdict=explained ;; esac
  fi
  rm -rf "$mine"
  local said
  said=$(printf '%s\t%s\t%s\t%s\t%s\t%d s' "$room" "$verdict" "$place" "$kind" "$change" $((SECONDS - begin)))
  case $verdict in killed* | "no mutant") mkdir -p "$out/done"; echo "$said" >"$out/done/$key" ;; esac
  echo "$said"
}

ninja -C "$build" -t compdb | awk -v OFS='\t' '
  /"file": / { file = $0; sub(/.*"file": "/, "", file); sub(/",?$/, "", file) }
  /"output": / { output = $0; sub(/.*"output": "/, "", output); sub(/",?$/, "", output)
                 if (output ~ /\.o$/) print file, output }' >"$work/objects"
export -f try run_program run_surely failed_test programs_of stop
export root build out work

for room in "${rooms[@]}"; do
  mapfile -t sources < <(sources_of "$room")
  awk -f ci/nightly/mutants.awk "${sources[@]}" |
    awk -F '\t' -v filter="$filter" '($1 ":" $2 " " $5) ~ filter' |
    choose "$count" >"$work/chosen"
  set -m
  (xargs -P "$jobs" -d '\n' -n 1 bash -c 'set -u; running=; trap stop INT TERM; try "$0" "$1"' "$room" \
    <"$work/chosen" | tee "$out/$room.txt" >&2) &
  running=-$!
  set +m
  wait "$!"
  running=
done

# One table of all rooms, from what the last run of each has said.
for room in "${rooms[@]}"; do cat "$out/$room.txt"; done | awk -F '\t' '
  { ++all[$1]; if (!($1 in seen)) { seen[$1] = 1; name[++rooms] = $1 } }
  $2 ~ /^killed/ { ++killed[$1] }
  $2 == "explained" { ++explained[$1] }
  $2 == "equivalent" || $2 == "no mutant" { ++none[$1] }
  $2 == "survived" { survivors = survivors "  " $3 "  " $4 "  " $5 "\n"; ++survived[$1] }
  END {
    printf "%-10s %8s %8s %10s %10s %8s\n", "room", "mutants", "killed", "explained", "survived", "killed"
    for (i = 1; i <= rooms; ++i) {
      r = name[i]; mutants = all[r] - none[r]
      share = mutants ? 100 * killed[r] / mutants : 0
      printf "%-10s %8d %8d %10d %10d %7.1f%%   and %d that are none\n", r, mutants, killed[r], explained[r], survived[r], share, none[r]
      if (share < 95 || survived[r]) bad = 1
    }
    if (survivors) printf "survivors:\n%s", survivors
    exit bad
  }' | tee "$out/table.txt"
exit "${PIPESTATUS[0]}"
