# Whether all benchmarks of a name reach a target, from Google Benchmark's JSON:
#   awk -v name=REGEX -v value=FIELD -v least=NUMBER | -v most=NUMBER -f bench_targets.awk FILE
# Prints those that miss it, and one line in the end; exit code 1 when one does, or there is none.
/^ *"name":/ {
  current = $0
  sub(/^ *"name": "/, "", current)
  sub(/",?$/, "", current)
}
$1 == "\"" value "\":" && current ~ name {
  number = $2 + 0
  ++found
  worst = found == 1 || (least != "" ? number < worst : number > worst) ? number : worst
  if ((least != "" && number < least + 0) || (most != "" && number > most + 0)) {
    ++missed
    print current ": " value " " number
  }
}
END {
  printf "%s of %s: %d, %d of which miss %s; the worst %g\n", value, name, found, missed,
    (least != "" ? ">= " least : "<= " most), worst
  exit !found || missed > 0
}
