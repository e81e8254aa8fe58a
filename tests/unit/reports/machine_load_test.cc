#include "reports/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Run runWith(const std::string& strategy, int block, std::optional<double> others,
            double stolen = 0) {
  Run run;
  run.strategy = strategy;
  run.block = block;
  run.load = MachineLoad{.samples = 2,
                         .others_pct = others,
                         .busy_pct = LoadRange{10, 20, 60},
                         .stolen_pct = LoadRange{0, stolen, 2 * stolen},
                         .load_average = std::nullopt,
                         .waiting_pct = std::nullopt};
  return run;
}

TEST(MachineLoadTest, RangesAreOverAllRuns) {
  std::vector<reports::Run> runs{runWith("a", 0, 1), runWith("b", 0, 3), runWith("a", 1, 8)};
  runs.emplace_back();  // of an older result
  const auto load = loadOf(runs);
  ASSERT_TRUE(load);
  EXPECT_EQ(load->runs, 3);
  EXPECT_EQ(load->others_pct->min, 1);
  EXPECT_EQ(load->others_pct->median, 3);
  EXPECT_EQ(load->others_pct->max, 8);
  EXPECT_EQ(load->busy_pct->min, 10);
  EXPECT_EQ(load->busy_pct->max, 60);
  EXPECT_FALSE(load->load_average) << "no run has it";
}

TEST(MachineLoadTest, WithoutAnyThereIsNone) {
  EXPECT_FALSE(loadOf(std::vector<reports::Run>(2)));
  EXPECT_THAT(busyNote(std::vector<reports::Run>(2)), IsEmpty());
}

TEST(MachineLoadTest, AQuietMachineIsNotMentioned) {
  const std::vector<reports::Run> runs{runWith("a", 0, 9.9, 1.9), runWith("b", 0, std::nullopt)};
  EXPECT_THAT(busyNote(runs), IsEmpty());
}

TEST(MachineLoadTest, OtherProgramsAreWarnedOfWithTheWorstRun) {
  const std::vector<reports::Run> runs{runWith("a", 0, 10), runWith("b", 1, 63.4),
                                       runWith("a", 1, 2)};
  const std::string note = busyNote(runs);
  EXPECT_THAT(note, HasSubstr("other programs used 10 % or more of the processors in 2 of 3 runs, "
                              "up to 63 % (b, block 2)"));
  EXPECT_THAT(note, Not(HasSubstr("host")));
}

TEST(MachineLoadTest, TimeThatTheHostTakesIsWarnedOf) {
  const std::vector<reports::Run> runs{runWith("a", 0, 1, 5)};
  EXPECT_THAT(busyNote(runs), HasSubstr("the host of this virtual machine took 2 % or more"));
}

}  // namespace
}  // namespace faultline::reports
