#!/usr/bin/env bash
# Which lines and branches of the faults of queue pairs their unit tests reach: a table of each file, and of
# injector/verbs and injector/verbs/shim. Builds in build-coverage with clang. Two minutes.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# shellcheck source=ci/common.sh
. ci/common.sh

out=build-coverage
# Children of fork() that end by _exit() write nothing: what only they do counts as not reached.
flags="-fprofile-instr-generate -fcoverage-mapping"
cmake -S . -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ \
  -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
cmake --build "$out" -j "$cores" --target unit_verbs unit_verbs_shim >/dev/null
rm -rf "$out/profiles"
mkdir "$out/profiles"
# Each case is a process, and a file.
LLVM_PROFILE_FILE="$root/$out/profiles/%p.profraw" \
  ctest --test-dir "$out" -R '^unit[.]verbs' -j "$cores" --no-tests=error | tail -n 3
llvm-profdata merge -sparse "$out"/profiles/*.profraw -o "$out/verbs.profdata"
shim=$(find "$out/injector" -name libfaultline-verbs.so -print -quit)
report() {
  llvm-cov report "$out/tests/unit_verbs" -object "$out/tests/unit_verbs_shim" -object "$shim" \
    -instr-profile="$out/verbs.profdata" -show-region-summary=false "$@"
}
report injector/verbs/*.cc injector/verbs/*.h
report injector/verbs/shim
