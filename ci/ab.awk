# A table of ratios from what ci/ab.sh measured:  awk -v limit=1.03 -f ci/ab.awk FILE
# Each line of FILE is: part, measure, pair, old or new, value, and whether higher or lower is better. A ratio is
# the new value over the old one of the same pair, or its inverse where higher is better: above 1 is worse.
# Exit code 1 when a median ratio is above the limit, or a measure has no pair.

{
  measure = $1 " " $2
  if (!(measure in better)) names[++count] = measure
  better[measure] = $6
  value[measure, $3, $4] = $5
  if ($3 > pairs) pairs = $3
}

# Sorts array[1..n].
function sort(array, n,    i, j, held) {
  for (i = 2; i <= n; ++i) {
    held = array[i]
    for (j = i - 1; j >= 1 && array[j] > held; --j) array[j + 1] = array[j]
    array[j + 1] = held
  }
}

# Of a sorted array.
function median(array, n) { return n % 2 ? array[(n + 1) / 2] : (array[n / 2] + array[n / 2 + 1]) / 2 }

END {
  print "| measure | old | new | ratio, median | least | most | pairs | |"
  print "|---|---|---|---|---|---|---|---|"
  for (k = 1; k <= count; ++k) {
    measure = names[k]
    n = 0
    for (pair = 1; pair <= pairs; ++pair) {
      if (!((measure, pair, "old") in value) || !((measure, pair, "new") in value)) continue
      before = value[measure, pair, "old"] + 0
      after = value[measure, pair, "new"] + 0
      if (before <= 0 || after <= 0) continue
      ++n
      olds[n] = before
      news[n] = after
      ratios[n] = better[measure] == "higher" ? before / after : after / before
    }
    if (n == 0) {
      print "| " measure " | - | - | - | - | - | 0 | not measured |"
      ++bad
      continue
    }
    sort(olds, n); sort(news, n); sort(ratios, n)
    worse = median(ratios, n) > limit + 0
    bad += worse
    printf "| %s | %.4g | %.4g | %.3f | %.3f | %.3f | %d | %s |\n", measure, median(olds, n), median(news, n),
      median(ratios, n), ratios[1], ratios[n], n, worse ? "WORSE than " limit : "ok"
  }
  exit count == 0 || bad > 0
}
