// The gate of the nightly benchmarks (ci/nightly/bench_targets.awk).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::TemporaryFolder;

/// What the gate says of the idle cost of the verbs shim, when these are the shares of the bound.
Ran judge(const std::string& post, const std::string& poll) {
  const TemporaryFolder folder;
  // As Google Benchmark writes it.
  const auto entry = [](const std::string& name, const std::string& of_bound) {
    return "    {\n      \"name\": \"" + name +
           "/iterations:2000\",\n      \"real_time\": 9.5e+03,\n" +
           "      \"added_ns\": 4.0e-01,\n      \"of_bound\": " + of_bound + "\n    }";
  };
  const std::string file = folder.write(
      "bench.json", "{\n  \"benchmarks\": [\n" + entry("nothing/post_send", "2.0e+00") + ",\n" +
                        entry("idle/post_send", post) + ",\n" + entry("idle/poll_cq", poll) +
                        ",\n" + entry("armed_elsewhere/poll_cq", "3.4e+00") + "\n  ]\n}\n");
  return testing::runProgram(
      "/bin/sh", {"-c", "awk -v name=\"$1\" -v value=of_bound -v most=1 -f \"$2\" \"$3\"", "sh",
                  "^idle/", FAULTLINE_SOURCE_DIR "/ci/nightly/bench_targets.awk", file});
}

TEST(BenchTargetsTest, AreReachedWhenAllAreWithinTheBound) {
  const Ran ran = judge("8.0e-02", "-1.2e-02");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "of_bound of ^idle/: 2, 0 of which miss <= 1; the worst 0.08\n");
}

TEST(BenchTargetsTest, AreMissedWhenOneIsNot) {
  const Ran ran = judge("8.0e-02", "1.01e+00");
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("idle/poll_cq/iterations:2000: of_bound 1.01\n"));
}

TEST(BenchTargetsTest, AreMissedWhenNothingWasMeasured) {
  const TemporaryFolder folder;
  const Ran ran = testing::runProgram(
      "/bin/sh",
      {"-c", "awk -v name=idle -v value=of_bound -v most=1 -f \"$1\" \"$2\"", "sh",
       FAULTLINE_SOURCE_DIR "/ci/nightly/bench_targets.awk", folder.write("bench.json", "{}\n")});
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
}

}  // namespace
}  // namespace faultline
