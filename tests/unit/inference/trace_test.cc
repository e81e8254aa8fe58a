#include "harness/inference/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/input_file.h"

namespace faultline::inference {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kMost = 100;

Result<RequestTrace> fileOf(const std::string& name) {
  return parseTrace(*readFile(FAULTLINE_SOURCE_DIR "/tests/data/fuzz/inputs/" + name), kMost);
}

/// Requests in short: "0 480/10".
std::vector<std::string> requestsOf(const Result<RequestTrace>& trace) {
  std::vector<std::string> found;
  if (!trace.ok()) return {trace.status().message()};
  for (const Request& request : trace->arrivals.requests) {
    found.push_back(fmt::format("{:.4g} {}/{}", request.arrival, request.prompt, request.output));
    EXPECT_EQ(request.id, static_cast<int>(found.size()) - 1);
  }
  return found;
}

std::vector<std::string> read(const std::string& text) {
  return requestsOf(parseTrace(text, kMost));
}

std::string messageOf(std::string_view text) {
  const auto trace = parseTrace(text, kMost);
  return trace.ok() ? std::string() : trace.status().message();
}

TEST(TraceTest, PublicFormatsAreReadAsTheyAre) {
  EXPECT_THAT(requestsOf(fileOf("azure.csv")), ElementsAre("0 480/10", "0.052 318/8"));
  EXPECT_THAT(requestsOf(fileOf("burst.csv")), ElementsAre("0 472/18"));
  EXPECT_THAT(requestsOf(fileOf("mooncake.jsonl")), ElementsAre("0 6755/500"));
  EXPECT_THAT(requestsOf(fileOf("ours.csv")), ElementsAre("0 480/10", "0.05 318/8"));
}

TEST(TraceTest, WhatAFileWasTakenForIsTold) {
  EXPECT_EQ(fileOf("azure.csv")->inWords(),
            "2 requests in Azure's format (TIMESTAMP, ContextTokens, GeneratedTokens)");
  EXPECT_EQ(
      fileOf("burst.csv")->inWords(),
      "1 request in BurstGPT's format (Timestamp, Request tokens, Response tokens); 1 without "
      "tokens of prompt or output is left out");
  EXPECT_THAT(fileOf("mooncake.jsonl")->inWords(), HasSubstr("Mooncake's format"));
  EXPECT_THAT(fileOf("ours.csv")->inWords(), HasSubstr("Faultline's format (arrival, prompt"));
}

TEST(TraceTest, BlanksCommentsAndTitlesInFrontLoseNoRequest) {
  EXPECT_THAT(requestsOf(fileOf("blanks.csv")), ElementsAre("0 480/10"));
  EXPECT_THAT(requestsOf(fileOf("comment.csv")), ElementsAre("0 480/10"));
  EXPECT_THAT(requestsOf(fileOf("lead.csv")), ElementsAre("0 480/10", "0.05 318/8"));
  EXPECT_THAT(read("0.5,100,7\n2.5,9,1"), ElementsAre("0.5 100/7", "2.5 9/1"));
  EXPECT_EQ(parseTrace("0.5,100,7\n2.5,9,1", kMost)->arrivals.qps, 0.5);
}

TEST(TraceTest, LineEndsMarksAndQuotesAreRead) {
  EXPECT_THAT(read("\xEF\xBB\xBF"
                   "arrival_s,prompt,output\r\n# half a second\r\n0.5,100,7\r\n\r\n2.5,9,1"),
              ElementsAre("0.5 100/7", "2.5 9/1"));
  EXPECT_THAT(read("\"arrival\",\"prompt\" , \"output\"\n\"0\",\" 480\",\"10\"\n"),
              ElementsAre("0 480/10"));
  EXPECT_THAT(read("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                   "5,\"a,\"\"b\"\"\",3,4,7,x\n"),
              ElementsAre("0 3/4"));
}

TEST(TraceTest, ColumnsAreFoundByTheirTitles) {
  EXPECT_THAT(read("output,arrival,prompt\n7,0.5,100\n"), ElementsAre("0.5 100/7"));
  EXPECT_THAT(read("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response "
                   "tokens,Total tokens,Log Type\n5,,1.5,GPT-4,3,4,7,API log\n"),
              ElementsAre("0 3/4"));
  EXPECT_THAT(read("timestamp,contexttokens,generatedtokens\n2024-05-10 00:00:00,3,4\n"),
              ElementsAre("0 3/4"));
}

TEST(TraceTest, DatesAreReadWithFractionAndZone) {
  const std::string titles = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_THAT(read(titles + "2024-05-10 00:00:00.009930+00:00,3,4\n"
                            "2024-05-10T02:00:01.009930+02:00,3,4\n"
                            "2024-05-10 00:00:02.009930Z,3,4\n"
                            "2024-05-11 00:00:00.009930,3,4\n"),
              ElementsAre("0 3/4", "1 3/4", "2 3/4", "8.64e+04 3/4"));
  for (const char* date : {"2024-02-30 00:00:00", "2024-13-01 00:00:00", "2024-01-01 24:00:00",
                           "2024-01-01", "1704067200", "2024-01-01 00:00:00 PM", ""}) {
    EXPECT_THAT(messageOf(titles + date + ",3,4\n"), HasSubstr("line 2, column 1")) << date;
    EXPECT_THAT(messageOf(titles + date + ",3,4\n"), HasSubstr("is no date like")) << date;
  }
}

TEST(TraceTest, AFirstLineThatIsNothingIsAnError) {
  for (const char* first :
       {"hello", "0,480", "x,1,2", "1,2,3,4", "[1,2,3]", "time;prompt;output"}) {
    EXPECT_THAT(messageOf(std::string(first) + "\n0,480,10\n"),
                HasSubstr("line 1 is neither a title nor a request"))
        << first;
  }
  EXPECT_THAT(messageOf("# c\n\nhello\n0,480,10\n"), HasSubstr("line 3 is neither"));
}

TEST(TraceTest, AJsonArrayIsSaidToBeNoJsonLines) {
  const std::string request = R"({"timestamp": 0, "input_length": 480, "output_length": 10})";
  EXPECT_THAT(messageOf("[" + request + "]\n"), HasSubstr("expected are JSON lines"));
  EXPECT_THAT(messageOf("[\n  " + request + "\n]\n"), HasSubstr("expected are JSON lines"));
}

TEST(TraceTest, UnknownMissingAndDoubleColumnsAreNamed) {
  EXPECT_THAT(messageOf("arrival,prompt,output,user\n0,1,2,x\n"),
              HasSubstr("line 1, column 23: Faultline's format has no column 'user'"));
  EXPECT_THAT(messageOf("Timestamp,Modell,Request tokens,Response tokens\n"),
              HasSubstr("did you mean 'Model'"));
  EXPECT_THAT(messageOf("TIMESTAMP,ContextTokens\n"),
              HasSubstr("needs the column 'GeneratedTokens'"));
  EXPECT_THAT(messageOf("arrival,prompt,output,prompt\n"), HasSubstr("is there twice"));
  EXPECT_THAT(messageOf("{\"timestamp\": 0, \"input_length\": 1, \"output_len\": 1}\n"),
              HasSubstr("line 1: Mooncake's format has no key 'output_len'"));
  EXPECT_THAT(messageOf("{\"timestamp\": 0, \"input_length\": 1}\n"),
              HasSubstr("'output_length' is missing"));
}

TEST(TraceTest, MistakesNameTheirPlace) {
  EXPECT_THAT(messageOf(""), HasSubstr("no request"));
  EXPECT_THAT(messageOf("arrival,prompt,output\n"), HasSubstr("no request"));
  EXPECT_THAT(messageOf("1,2,3\n1,2\n"), HasSubstr("line 2 has 2 columns"));
  EXPECT_THAT(messageOf("1,2,3\n1,2,3,4\n"), HasSubstr("line 2 has 4 columns"));
  EXPECT_THAT(messageOf("1,2,3\nt,2,3\n"), HasSubstr("line 2, column 1: 't' is no time"));
  EXPECT_THAT(messageOf("1,2,3\n1,2x,3\n"), HasSubstr("line 2, column 3: '2x' is no number"));
  EXPECT_THAT(messageOf("1,2,3\n0.5,2,3\n"), HasSubstr("line 2, column 1: it arrives before"));
  EXPECT_THAT(messageOf("nan,2,3\n"), HasSubstr("line 1, column 1"));
  EXPECT_THAT(messageOf("-1,2,3\n"), HasSubstr("line 1, column 1: it arrives before"));
  EXPECT_THAT(messageOf("1,0,3\n"), HasSubstr("line 1 has a prompt or an output of no token"));
  EXPECT_THAT(messageOf("1,-2,3\n"), HasSubstr("line 1"));
  EXPECT_THAT(messageOf("1,99999999999,3\n"), HasSubstr("line 1"));
  EXPECT_THAT(messageOf("arrival,prompt,output\n\"0,1,2\n"), HasSubstr("not closed"));
  EXPECT_THAT(messageOf("{\"timestamp\": 0,\n"), HasSubstr("line 1"));
  EXPECT_THAT(messageOf("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
                        "\"hash_ids\": " +
                        std::string(200'000, '[') + "}\n"),
              HasSubstr("nested deeper"));
}

TEST(TraceTest, TooManyRequestsAreAnErrorThatSaysWhatToDo) {
  std::string text;
  for (std::size_t i = 0; i <= kMost; ++i) text += "1,2,3\n";
  EXPECT_THAT(messageOf(text), HasSubstr("more than 100 requests; cut it"));
}

}  // namespace
}  // namespace faultline::inference
