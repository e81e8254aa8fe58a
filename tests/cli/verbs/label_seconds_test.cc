// What CI says of how long the tests of a label take (ci/label_seconds.awk).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using testing::Ran;
using testing::TemporaryFolder;

struct Case {
  std::string name;
  std::string seconds;
  std::string status = "run";
};

/// What it says of the label rdma, of which 300 s are allowed.
std::string told(const std::vector<Case>& cases) {
  const TemporaryFolder folder;
  // As ctest writes it.
  std::string junit =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"x\"\n\ttests=\"3\"\n\t>\n";
  for (const Case& each : cases) {
    junit += "\t<testcase name=\"" + each.name + "\" classname=\"" + each.name + "\" time=\"" +
             each.seconds + "\" status=\"" + each.status +
             "\">\n\t\t<system-out>took time=\"999\"\n</system-out>\n\t</testcase>\n";
  }
  const Ran ran =
      testing::runProgram("/bin/sh", {"-c", "awk -v label=rdma -v most=300 -f \"$1\" \"$2\"", "sh",
                                      FAULTLINE_SOURCE_DIR "/ci/label_seconds.awk",
                                      folder.write("junit.xml", junit + "</testsuite>\n")});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  return ran.out;
}

TEST(LabelSecondsTest, AreThoseOfItsOwnTestsTogether) {
  EXPECT_EQ(told({{"rdma.lab", "200.25"},
                  {"unit.rdma.Case.name", "77"},
                  {"rdma.faults", "99.75", "fail"},
                  {"rdma2.x", "5"}}),
            "label rdma: 2 tests took 300.0 s together, which is within 300 s\n");
  EXPECT_EQ(told({{"rdma.lab", "200.25"}, {"rdma.faults", "99.85"}}),
            "label rdma: 2 tests took 300.1 s together, which is MORE THAN 300 s\n");
}

TEST(LabelSecondsTest, WhatWasSkippedHasTakenNoTimeAndIsTold) {
  EXPECT_EQ(told({{"rdma.lab", "12.5"}, {"rdma.kill", "400", "notrun"}}),
            "label rdma: 1 tests took 12.5 s together, which is within 300 s; 1 were skipped\n");
  EXPECT_EQ(told({{"rdma.lab", "1", "notrun"}, {"rdma.kill", "1", "disabled"}}),
            "label rdma: no test ran; 2 were skipped\n");
}

TEST(LabelSecondsTest, WhereThereAreNoneNothingIsSaid) {
  EXPECT_EQ(told({{"unit.base.Case.name", "1"}}), "");
}

}  // namespace
}  // namespace faultline
