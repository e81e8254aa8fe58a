# Lists the failed tests of a JUnit file of ctest, each with the end of what it printed: the reader of
# a long log needs not look for it.

BEGIN { most = 30 }

/<testcase / {
  name = $0
  sub(/.*<testcase name="/, "", name)
  sub(/".*/, "", name)
  failed = / status="fail"/
  lines = 0
}
failed {
  line = $0
  gsub(/<[^>]*>/, "", line)
  gsub(/&lt;/, "<", line)
  gsub(/&gt;/, ">", line)
  gsub(/&quot;/, "\"", line)
  gsub(/&apos;/, "'", line)
  gsub(/&amp;/, "\\&", line)
  if (line ~ /[^[:space:]]/) output[lines++] = line
}
/<\/testcase>/ && failed {
  print name
  for (i = (lines > most ? lines - most : 0); i < lines; ++i) print "    " output[i]
  failed = 0
}
