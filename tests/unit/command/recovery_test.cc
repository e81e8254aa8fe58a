#include "harness/command/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum RecoveryEvent::Kind;

TimePoint after(int ms) { return TimePoint(100s) + ms * 1ms; }

TEST(RecoveryLinesTest, ReadsWhatIsAppendedLineByLine) {
  RecoveryLines lines;
  const std::string file = "failed\nrebuilt 12\nleft\n";
  const auto look = [&](std::size_t length) {
    const auto from = static_cast<std::size_t>(lines.offset());
    return *lines.read(std::string_view(file).substr(from, length - from));
  };
  EXPECT_THAT(look(6), IsEmpty()) << "not ended yet";
  EXPECT_THAT(look(16), ElementsAre(RecoveryEvent{kFailed, 0}));
  EXPECT_THAT(look(file.size()), ElementsAre(RecoveryEvent{kRebuilt, 12}, RecoveryEvent{kLeft, 0}));
  EXPECT_THAT(look(file.size()), IsEmpty());
}

TEST(RecoveryLinesTest, RefusesWhatItDoesNotKnow) {
  for (const char* line : {"rebuilt\n", "rebuilt 0\n", "rebuilt 4x\n", "Failed\n", "\n"}) {
    RecoveryLines lines;
    EXPECT_THAT(lines.read(line).status().message(), HasSubstr("is none of 'failed'")) << line;
  }
}

TEST(RebuildingsTest, BeginsWithTheFirstFailureAndEndsWithTheLastNewCommunicator) {
  Rebuildings all(2, /*mayLose=*/false);
  EXPECT_FALSE(all.told(1, {kFailed}, after(10)));
  EXPECT_FALSE(all.told(0, {kFailed}, after(15)));
  EXPECT_FALSE(all.told(0, {kRebuilt, 2}, after(40)));
  EXPECT_THAT(all.problem(), HasSubstr("not all ranks"));
  const auto made = all.told(1, {kRebuilt, 2}, after(50));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->noticed, after(10));
  EXPECT_EQ(made->resumed, after(50));
  EXPECT_EQ(made->ranks, 2);
  EXPECT_THAT(made->missing, IsEmpty());
  EXPECT_FALSE(all.ended(0, after(60)));
  EXPECT_FALSE(all.ended(1, after(60)));
  EXPECT_EQ(all.problem(), "");
}

TEST(RebuildingsTest, GoesOnWithoutThoseThatLeftOrDied) {
  Rebuildings all(4, /*mayLose=*/true);
  all.told(1, {kFailed}, after(10));
  all.told(1, {kLeft}, after(11));
  all.ended(1, after(12));
  all.told(0, {kFailed}, after(13));
  all.told(2, {kFailed}, after(14));
  all.told(0, {kRebuilt, 2}, after(20));
  all.told(2, {kRebuilt, 2}, after(21));
  const auto made = all.ended(3, after(30));
  ASSERT_TRUE(made) << "the last that was waited for is gone";
  EXPECT_EQ(made->ranks, 2);
  EXPECT_THAT(made->missing, ElementsAre(1, 3));
  EXPECT_EQ(all.problem(), "");
}

TEST(RebuildingsTest, SaysWhatDoesNotFitTogether) {
  Rebuildings silent(2, true);
  silent.ended(0, after(1));
  silent.ended(1, after(1));
  EXPECT_THAT(silent.problem(), HasSubstr("no process told that its communicator failed"));

  Rebuildings wrongSize(2, true);
  for (const int rank : {0, 1}) wrongSize.told(rank, {kFailed}, after(1));
  for (const int rank : {0, 1}) wrongSize.told(rank, {kRebuilt, 3}, after(2));
  EXPECT_THAT(wrongSize.problem(), HasSubstr("of 3, and 2 of 2"));

  Rebuildings unasked(1, true);
  unasked.told(0, {kRebuilt, 1}, after(1));
  EXPECT_THAT(unasked.problem(), HasSubstr("not that the one before had failed"));

  Rebuildings gaveUp(2, true);
  for (const int rank : {0, 1}) gaveUp.told(rank, {kFailed}, after(1));
  gaveUp.ended(0, after(2));
  EXPECT_THAT(gaveUp.problem(), HasSubstr("ended without a new communicator"));

  Rebuildings fewer(2, /*mayLose=*/false);
  fewer.told(0, {kFailed}, after(1));
  fewer.ended(1, after(2));
  fewer.told(0, {kRebuilt, 1}, after(3));
  EXPECT_THAT(fewer.problem(), HasSubstr("1 of 2 ranks, and all are to go on"));

  Rebuildings gone(2, true);
  gone.told(0, {kLeft}, after(1));
  gone.told(0, {kFailed}, after(2));
  EXPECT_THAT(gone.problem(), HasSubstr("after it had left"));
}

}  // namespace
}  // namespace faultline::command
