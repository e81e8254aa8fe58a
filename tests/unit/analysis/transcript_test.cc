#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "harness/analysis/replay.h"
#include "reports/result_json.h"
#include "wire/message.h"

// Recorded runs in, their results out (docs/transcript.md).

namespace faultline::run {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kTranscripts = fs::path(FAULTLINE_SOURCE_DIR) / "tests/data/transcripts";

std::string textOf(const fs::path& path) {
  const Result<std::string> text = readFile(path.string());
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class RecordedRunsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedRunsTest, GiveTheSameResultAgain) {
  const fs::path path = kTranscripts / GetParam();
  const auto result = replay(textOf(path.string() + ".jsonl"));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto now = linesOf(reports::toJsonText(*result));
  const auto before = linesOf(textOf(path.string() + ".json"));
  for (std::size_t i = 0; i < std::min(now.size(), before.size()); ++i) {
    ASSERT_EQ(now[i], before[i]) << "line " << i + 1 << " of " << GetParam() << ".json";
  }
  EXPECT_EQ(now.size(), before.size());
  EXPECT_EQ(reports::toJsonText(*result), textOf(path.string() + ".json")) << "to the last byte";
}

std::vector<std::string> recordedRuns() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kTranscripts)) {
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  EXPECT_FALSE(names.empty());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, RecordedRunsTest, ::testing::ValuesIn(recordedRuns()),
                         [](const auto& test) { return test.param; });

/// The same messages, those of each rank in their order and those of different ranks in any; none
/// changes places with what the controller decided.
std::vector<std::string> shuffled(const std::vector<std::string>& lines, unsigned seed) {
  std::mt19937 random(seed);
  std::map<int, std::deque<std::string>> heard;  // since the last decision, by rank
  std::vector<std::string> mixed;
  const auto flush = [&] {
    std::vector<int> turns;
    for (const auto& [rank, own] : heard) turns.insert(turns.end(), own.size(), rank);
    std::ranges::shuffle(turns, random);
    for (const int rank : turns) {
      mixed.push_back(std::move(heard[rank].front()));
      heard[rank].pop_front();
    }
    heard.clear();
  };
  for (const std::string& line : lines) {
    const auto json = nlohmann::json::parse(line);
    if (json["line"] == "heard" || json["line"] == "shrunk") {
      heard[json["rank"].get<int>()].push_back(line);
    } else {
      flush();
      mixed.push_back(line);
    }
  }
  return mixed;
}

class ShuffledRunsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ShuffledRunsTest, GiveTheSameResultInWhateverOrderRanksWereHeard) {
  const auto lines = linesOf(textOf(kTranscripts / (GetParam() + ".jsonl")));
  const std::string expected = textOf(kTranscripts / (GetParam() + ".json"));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto mixed = shuffled(lines, seed);
    ASSERT_EQ(mixed.size(), lines.size());
    EXPECT_NE(mixed, lines) << "nothing was shuffled";
    const auto result = replay(joined(mixed));
    ASSERT_TRUE(result.ok()) << result.status().message();
    const auto now = linesOf(reports::toJsonText(*result));
    const auto before = linesOf(expected);
    ASSERT_EQ(now.size(), before.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
      ASSERT_EQ(now[i], before[i])
          << "line " << i + 1 << " of " << GetParam() << ".json, seed " << seed;
    }
  }
}

/// Those of ranks: programs that are not ours tell nothing.
std::vector<std::string> runsOfRanks() {
  std::vector<std::string> names = recordedRuns();
  std::erase_if(names, [](const std::string& name) {
    return textOf(kTranscripts / (name + ".jsonl")).find(R"("line":"heard")") == std::string::npos;
  });
  EXPECT_GE(names.size(), 7u);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ShuffledRunsTest, ::testing::ValuesIn(runsOfRanks()),
                         [](const auto& test) { return test.param; });

class TranscriptTest : public ::testing::Test {
 protected:
  std::string whyNot(const std::vector<std::string>& lines) const {
    const auto result = replay(joined(lines));
    return result.ok() ? "it is replayed" : result.status().message();
  }

  std::vector<std::string> lines_ = linesOf(textOf(kTranscripts / "hung.jsonl"));
};

TEST_F(TranscriptTest, OneThatIsCutOffSaysSo) {
  lines_.pop_back();
  EXPECT_THAT(whyNot(lines_), HasSubstr("it is cut off"));
  EXPECT_THAT(whyNot({}), HasSubstr("it is cut off"));
  lines_.back().resize(lines_.back().size() / 2);
  EXPECT_THAT(whyNot(lines_), HasSubstr("it is not JSON"));
}

TEST_F(TranscriptTest, AWrongLineIsNamed) {
  const auto with = [&](std::string line) {
    std::vector<std::string> lines = lines_;
    lines[2] = std::move(line);
    return whyNot(lines);
  };
  EXPECT_THAT(with("[]"), HasSubstr("line 3: this is no line of a transcript"));
  EXPECT_THAT(with(R"({"line":"sung","at":1})"),
              HasSubstr("line 3: this program knows no line 'sung'"));
  EXPECT_THAT(with(R"({"line":"started"})"), HasSubstr("line 3: at: is missing"));
  EXPECT_THAT(with(R"({"line":"started","at":"noon"})"),
              HasSubstr("line 3: at: expected an integer"));
  EXPECT_THAT(with(R"({"line":"load"})"), HasSubstr("it belongs to no run"));
}

TEST_F(TranscriptTest, WhatBelongsToNoRunIsRefused) {
  EXPECT_THAT(whyNot({lines_[0], lines_[2]}), HasSubstr("line 2: it belongs to no run"));
  EXPECT_THAT(whyNot({lines_[1]}), HasSubstr("line 1: the scenario is missing"));
  EXPECT_THAT(whyNot({lines_.back()}), HasSubstr("line 1: the scenario is missing"));
  EXPECT_THAT(whyNot({lines_[0], R"({"line":"run","block":0,"strategy":"luck"})"}),
              HasSubstr("no strategy 'luck'"));
}

TEST_F(TranscriptTest, LinesInAnotherOrderAreRefused) {
  const auto with = [&](std::size_t place, const std::string& line) {
    std::vector<std::string> lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), line);
    return whyNot(lines);
  };
  EXPECT_THAT(with(1, lines_[0]), HasSubstr("line 2: there is one scenario already"));
  EXPECT_THAT(with(3, lines_[1]), HasSubstr("line 4: the run before it has no end"));
  EXPECT_THAT(with(3, lines_.back()), HasSubstr("line 4: the run before it has no end"));
  EXPECT_THAT(with(lines_.size(), lines_[2]), HasSubstr("it stands behind the last line"));
  EXPECT_THAT(with(lines_.size() - 1, lines_[lines_.size() - 2]),
              HasSubstr("it belongs to no run"));
}

TEST_F(TranscriptTest, WhatAProcessSaidMustBeAMessage) {
  const auto heard = [&](const std::string& message) {
    std::vector<std::string> lines = lines_;
    lines.insert(lines.begin() + 3,
                 R"({"line":"heard","rank":0,"at":1,"message":)" + message + "}");
    return whyNot(lines);
  };
  EXPECT_THAT(heard(R"({"type":"begin","iteration":"first"})"),
              HasSubstr("line 4: message.iteration: expected an integer"));
  EXPECT_THAT(heard(R"({"type":"step","surplus":1})"),
              HasSubstr("line 4: message.surplus: is unknown"));
  EXPECT_THAT(heard(R"({"type":7})"), HasSubstr("line 4: message.type: expected a string"));
  EXPECT_THAT(heard(R"({"type":"hello"})"), HasSubstr("line 4: message.type: expected one of"));
  EXPECT_EQ(heard(R"({"type":"token","requests":[1],"at":2})"), "it is replayed")
      << "of a job that serves nothing it says nothing";
}

TEST_F(TranscriptTest, ARunInWhichTheBenchFailedIsLeftOut) {
  std::string last = lines_.back();
  const std::string none = R"("bench_error":"")";
  last.replace(last.find(none), none.size(), R"("bench_error":"no more files")");
  const auto result = replay(joined({lines_[0], lines_[1], lines_[2], last}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, reports::Verdict::kError);
  EXPECT_EQ(result->reason, "no more files");
  EXPECT_TRUE(result->runs.empty());
}

TEST_F(TranscriptTest, ProgramsOfItsFaultsNeedNotBeHere) {
  nlohmann::json header = nlohmann::json::parse(lines_[0]);
  nlohmann::json& fault = header["scenario"]["faults"][0];
  fault["kind"] = "external";
  for (const char* command : {"apply", "revert", "evidence"}) fault[command] = "no-such-program";
  lines_[0] = header.dump();
  EXPECT_EQ(whyNot(lines_), "it is replayed");
}

TEST_F(TranscriptTest, OneOfAnotherVersionIsRefused) {
  const auto header = [](int version, int messages) {
    return fmt::format(R"({{"line":"transcript","version":{},"messages":{},"scenario":{{}}}})",
                       version, messages);
  };
  EXPECT_THAT(whyNot({header(99, wire::kVersion)}), HasSubstr("replays version 2, found 99"));
  EXPECT_THAT(
      whyNot({header(2, 99)}),
      HasSubstr(fmt::format("understands messages of version {}, found 99", wire::kVersion)));
}

}  // namespace
}  // namespace faultline::run
