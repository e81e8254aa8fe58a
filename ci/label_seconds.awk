# Adds up the seconds of one label's tests in a JUnit file of ctest, and says whether they are within a
# bound. Prints nothing where the file has none of them.
#   awk -v label=rdma -v most=300 -f label_seconds.awk FILE

function attribute(name) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

/<testcase / && index(attribute("name"), label ".") == 1 {
  if (attribute("status") == "notrun" || attribute("status") == "disabled") {
    ++skipped
  } else {
    ++ran
    seconds += attribute("time")
  }
}

END {
  if (ran + skipped == 0) exit
  if (ran > 0) {
    printf "label %s: %d tests took %.1f s together, which is %s %d s", label, ran, seconds,
      seconds <= most ? "within" : "MORE THAN", most
  } else {
    printf "label %s: no test ran", label
  }
  if (skipped > 0) printf "; %d were skipped", skipped
  print ""
}
