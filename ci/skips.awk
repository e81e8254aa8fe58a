# Lists the skipped tests of a JUnit file of ctest, each with its reason: the line that GoogleTest
# prints below "Skipped", or what follows "SKIPPED:" in the output of our own scripts.

/<testcase / {
  name = $0
  sub(/.*<testcase name="/, "", name)
  sub(/".*/, "", name)
  skipped = 0
  reason = ""
}
/<skipped/ { skipped = 1 }
expect_reason { reason = $0; expect_reason = 0 }
/: Skipped$/ { expect_reason = 1 }
/SKIPPED: / && reason == "" { reason = $0; sub(/.*SKIPPED: /, "", reason) }
/<\/testcase>/ && skipped {
  gsub(/&lt;/, "<", reason)
  gsub(/&gt;/, ">", reason)
  gsub(/&quot;/, "\"", reason)
  gsub(/&apos;/, "'", reason)
  gsub(/&amp;/, "\\&", reason)
  print name ": " (reason == "" ? "no reason given" : reason)
}
