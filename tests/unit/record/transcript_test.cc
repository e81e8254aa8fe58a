#include "harness/record/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_scenario.h"

// What cannot be written is told.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

TEST(TranscriptFileTest, OneThatCannotBeMadeIsNamed) {
  const auto made = Transcript::create("/nowhere/kept.jsonl", sampleScenario());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr("make the transcript /nowhere/kept.jsonl"));
}

TEST(TranscriptFileTest, AFullDiskIsToldAtTheEnd) {
  auto made = Transcript::create("/dev/full", sampleScenario());
  ASSERT_TRUE(made.ok()) << made.status().message();
  made->add(event::Crashed{"and went on"});
  const Status finished = made->finish({});
  EXPECT_EQ(finished.code(), Code::kIo);
  EXPECT_THAT(finished.message(), HasSubstr("/dev/full could not be written"));
}

}  // namespace
}  // namespace faultline::run
