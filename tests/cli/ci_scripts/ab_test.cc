#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::runProgram;
using testing::TemporaryFolder;

const std::string kSource = FAULTLINE_SOURCE_DIR;

/// The table of what was measured, a line each: part, measure, pair, old or new, value, direction.
Ran table(const std::string& measured) {
  const TemporaryFolder folder;
  return runProgram("/usr/bin/env", {"awk", "-v", "limit=1.03", "-f", kSource + "/ci/ab.awk",
                                     folder.write("measured.txt", measured)});
}

TEST(AbTable, ARatioIsOfOnePairAndItsMedianIsJudged) {
  // The machine is half as fast in the second pair, which the ratio does not see.
  const Ran ran = table(
      "channel round_trip 1 old 10 lower\nchannel round_trip 1 new 10.1 lower\n"
      "channel round_trip 2 new 20.4 lower\nchannel round_trip 2 old 20 lower\n"
      "channel round_trip 3 old 10 lower\nchannel round_trip 3 new 13 lower\n");
  EXPECT_EQ(ran.exit, 0) << ran.out;
  EXPECT_THAT(ran.out,
              HasSubstr("| channel round_trip | 10 | 13 | 1.020 | 1.010 | 1.300 | 3 | ok |"));
}

TEST(AbTable, AHigherRateIsBetter) {
  EXPECT_THAT(table("channel throughput 1 old 10 higher\nchannel throughput 1 new 20 higher\n").out,
              HasSubstr("| channel throughput | 10 | 20 | 0.500 | 0.500 | 0.500 | 1 | ok |"));
  const Ran slower =
      table("channel throughput 1 old 20 higher\nchannel throughput 1 new 10 higher\n");
  EXPECT_EQ(slower.exit, 1);
  EXPECT_THAT(slower.out, HasSubstr("| 2.000 | 2.000 | 2.000 | 1 | WORSE than 1.03 |"));
}

TEST(AbTable, AMeasureWithoutAPairIsNoSuccess) {
  const Ran ran = table("channel round_trip 1 old 10 lower\nchannel round_trip 2 new 10 lower\n");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("not measured"));
  EXPECT_EQ(table("").exit, 1);
}

/// A folder that looks like a checkout which is built: its programs tell numbers that are given.
void pretendBuild(const TemporaryFolder& folder, const std::string& tree, double roundTrip) {
  std::filesystem::create_directories(folder.path() / tree / "build/tests");
  const auto program = [&](const std::string& name, const std::string& text) {
    const std::string path = folder.write(tree + "/build/" + name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  };
  program("tests/bench_point_to_point", "echo '    1  10.0  10.0  1.0  0.5 / 0.5  3.0'");
  program("tests/bench_ping_pong",
          fmt::format("echo 'median: {:.2f} us, plain 9.00 us, ratio 1.0'", roundTrip));
  program("faultline",
          "while [ $# -gt 1 ]; do [ $1 = --out ] && out=$2; shift; done; mkdir -p $out; "
          "echo '{\"runs\": [{\"failovers\": [{\"pause_ms\": 5}]}]}' >$out/result.json");
}

TEST(AbScript, MeasuresBothInTurnsAndEndsWithOneWhenOneIsWorse) {
  const TemporaryFolder folder;
  const std::string cmake = folder.write("cmake", "#!/bin/sh\n");
  std::filesystem::permissions(cmake, std::filesystem::perms::owner_all);
  const std::string place = folder.path().string();
  pretendBuild(folder, "old", 10);
  for (const double roundTrip : {10.2, 11.0}) {
    pretendBuild(folder, "new", roundTrip);
    const Ran ran = runProgram(
        "/usr/bin/env", {"PATH=" + place + ":/usr/bin:/bin", "AB_PAIRS=2", "AB_OUT=" + place,
                         "bash", kSource + "/ci/ab.sh", place + "/old", place + "/new", "channel"});
    EXPECT_EQ(ran.exit, roundTrip > 10.3 ? 1 : 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("| channel failover_pause | 5 | 5 | 1.000 |"));
    EXPECT_THAT(ran.out, HasSubstr("| channel throughput | 10 | 10 | 1.000 |"));
    EXPECT_THAT(ran.out, HasSubstr("| channel cpu_per_GiB | 0.5 | 0.5 | 1.000 |"));
  }
  const Ran order = runProgram(
      "/usr/bin/env", {"awk", "$2 == \"round_trip\" { print $3, $4 }", place + "/measured.txt"});
  EXPECT_EQ(order.out, "1 old\n1 new\n2 new\n2 old\n");
}

TEST(AbScript, SaysWhatIsWrongBeforeItBuildsAnything) {
  const auto script = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bash", kSource + "/ci/ab.sh"});
    return runProgram("/usr/bin/env", arguments);
  };
  EXPECT_EQ(script({}).exit, 2);
  EXPECT_THAT(script({"HEAD"}).err, HasSubstr("ci/ab.sh OLD NEW"));
  EXPECT_EQ(script({"HEAD", "HEAD", "channels"}).exit, 2);
  const Ran ran = script({"no-such-commit", "HEAD"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("no-such-commit is neither a commit nor a folder"));
}

}  // namespace
}  // namespace faultline
