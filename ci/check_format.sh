#!/usr/bin/env bash
# Does every .cc and .h have the format of .clang-format? Names those that have not, and the command that
# mends them. Exit code 1 then; 77, "SKIPPED: reason", where clang-format-14 is missing: other versions
# break other lines.
#
#   ci/check_format.sh [FOLDER]    the checkout of FOLDER; without it, this one
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
program=clang-format-14
if ! command -v "$program" >/dev/null; then
  echo "SKIPPED: there is no $program; ci/setup.sh installs it"
  exit 77
fi

# Those that git knows, or would add; without git all of them.
list() {
  git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.h' 2>/dev/null ||
    find . -path './build*' -prune -o \( -name '*.cc' -o -name '*.h' \) -printf '%P\0'
}

scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
list | while IFS= read -r -d '' file; do
  [[ ! -e $file ]] || printf '%s\0' "$file" # one that is removed, and not yet for git
done >"$scratch"
count=$(tr -cd '\0' <"$scratch" | wc -c)
status=0
said=$(xargs -0 -n 50 -P "$(nproc)" "$program" --dry-run -Werror <"$scratch" 2>&1) || status=$?
if ((status == 0)); then
  echo "$count files have the format of .clang-format"
  exit 0
fi
mapfile -t bad < <(sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/\1/p' <<<"$said" | sort -u)
if ((${#bad[@]} == 0)); then # not about the format
  echo "$said"
  exit 1
fi
echo "${#bad[@]} of $count files have not the format of .clang-format:"
printf '  %s\n' "${bad[@]}"
echo "mend them with: $program -i ${bad[*]}"
exit 1
