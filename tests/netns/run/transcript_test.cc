#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/input_file.h"
#include "tests/netns/run/run_fixture.h"

// What a run keeps is what its result is made of (docs/transcript.md).

namespace faultline::run {
namespace {

class KeptTranscriptTest : public RunTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(KeptTranscriptTest, GivesTheSameResultByteForByte) {
  const std::string kept = (folder_.path() / "kept.jsonl").string();
  const testing::Ran ran = testing::runFaultline(
      {"run", FAULTLINE_SOURCE_DIR "/tests/data/transcripts/" + GetParam() + ".yaml", "--out",
       out(), "--transcript", kept},
      folder_.path());
  const Result<std::string> result = readFile(out() + "/result.json");
  ASSERT_TRUE(result.ok()) << ran.out << ran.err;
  const testing::Ran replayed = testing::runFaultline({"report", "--transcript", kept});
  EXPECT_EQ(replayed.exit, 0) << replayed.err;
  EXPECT_TRUE(replayed.out == *result) << "they differ";
}

INSTANTIATE_TEST_SUITE_P(Small, KeptTranscriptTest, ::testing::Values("killed", "command", "hung"),
                         [](const auto& test) { return test.param; });

TEST_F(RunTest, ATranscriptThatCannotBeMadeIsAnErrorBeforeAnyRun) {
  const testing::Ran ran =
      testing::runFaultline({"run", FAULTLINE_SOURCE_DIR "/tests/data/transcripts/command.yaml",
                             "--out", out(), "--transcript", "/nowhere/kept.jsonl"},
                            folder_.path());
  EXPECT_EQ(ran.exit, 3) << ran.out;
  EXPECT_THAT(ran.err, ::testing::HasSubstr("make the transcript /nowhere/kept.jsonl"));
}

}  // namespace
}  // namespace faultline::run
