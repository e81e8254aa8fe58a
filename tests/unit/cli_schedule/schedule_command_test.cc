#include "harness/cli/schedule_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/recorded_schedule.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int exitCode = -1;
  std::string out;
  std::string err;
};

Outcome run(const std::string& arguments) {
  CLI::App app;
  Outcome outcome;
  addScheduleCommand(app, outcome.exitCode);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse("schedule " + arguments);
  } catch (const CLI::ParseError& error) {
    outcome.exitCode = 2;
  }
  std::fflush(nullptr);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(ScheduleCommandTest, VerifyAsJson) {
  const Outcome outcome = run("verify --algorithm ring --ranks 4 --size 1000003 --json");
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["operations"], 48);
  EXPECT_TRUE(json["problems"].empty());
}

/// The commands in the help, without "faultline schedule", a line each.
std::vector<std::string> examples(const CLI::App& app) {
  std::istringstream help(app.get_footer());
  std::vector<std::string> commands;
  for (std::string line; std::getline(help, line);) {
    const std::string_view start = "  faultline schedule ";
    if (line.starts_with(start)) {
      commands.push_back(line.substr(start.size()));
    } else if (!commands.empty() && commands.back().ends_with('\\')) {
      commands.back().pop_back();
      commands.back() += line;
    }
  }
  return commands;
}

TEST(ScheduleCommandTest, TheExamplesOfTheHelpWork) {
  CLI::App app;
  int exitCode = -1;
  const std::vector<std::string> commands = examples(*addScheduleCommand(app, exitCode));
  EXPECT_GE(commands.size(), 5U);
  for (const std::string& command : commands) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.exitCode, 0) << command << "\n" << outcome.err;
  }
}

TEST(ScheduleCommandTest, TheFormulaOfR2AllReduceIsForItsChunks) {
  const std::string r2 = "cost --algorithm r2_allreduce --ranks 8 --segments 32 --straggler 1:";
  const auto json = nlohmann::json::parse(run(r2 + "0.5 --json").out);
  EXPECT_EQ(json["formula_chunks"], 56);
  EXPECT_DOUBLE_EQ(json["formula_over_ring"], 1 + 4.0 / 7 * (1 + 1.0 / 56));
  EXPECT_NEAR(json["time_over_formula"].get<double>(), 1, 0.05);
  EXPECT_THAT(run(r2 + "0.75").out, HasSubstr("(K = 35)"));
  EXPECT_THAT(run("cost --algorithm r2_allreduce --ranks 4 --segments 1 --straggler 1:0.5").out,
              HasSubstr("2.0000 (a ring alone)"));
  for (const char* none : {"ring --ranks 4 --straggler 1:0.5",
                           "r2_allreduce --ranks 4 --straggler 1:0.5 --straggler 2:0.5"}) {
    const auto other =
        nlohmann::json::parse(run(std::string("cost --json --algorithm ") + none).out);
    EXPECT_FALSE(other.contains("formula_over_ring")) << none;
  }
}

TEST(ScheduleCommandTest, AWrongScheduleIsExitCode1) {
  const schedule::RecordedSchedule nothing(2, 1, 10);
  testing::internal::CaptureStdout();
  EXPECT_EQ(verifyAndPrint(nothing, nlohmann::json::object()), 1);
  std::fflush(nullptr);
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["more_problems"], 0);
  EXPECT_EQ(json["counted_all"], true);
  ASSERT_EQ(json["problems"].size(), 2u);
  EXPECT_EQ(json["problems"][0]["rank"], 0);
  EXPECT_THAT(json["problems"][0]["text"].get<std::string>(), HasSubstr("lack the contribution"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(verifyAndPrint(nothing, nullptr), 1);
  std::fflush(nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("recorded: 2 ranks, 0 operations: WRONG\n"));
}

// Each lane's messages meet those of each other lane: more than are counted.
TEST(ScheduleCommandTest, ThatProblemsWereNotAllCountedIsTold) {
  constexpr int kLanes = 1460;
  schedule::RecordedSchedule wrong(2, kLanes, 2);
  for (int lane = 0; lane < kLanes; ++lane) {
    wrong.at(0, lane) = {
        schedule::Op{.kind = schedule::OpKind::kSend, .peer = 1, .piece = {0, 2}, .source = {}}};
    wrong.at(1, lane) = {
        schedule::Op{.kind = schedule::OpKind::kRecv, .peer = 0, .piece = {0, 2}, .source = {}}};
  }
  testing::internal::CaptureStdout();
  EXPECT_EQ(verifyAndPrint(wrong, nlohmann::json::object()), 1);
  std::fflush(nullptr);
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json["counted_all"], false);
  EXPECT_GT(json["more_problems"], 0);
}

TEST(ScheduleCommandTest, CostAsJsonHasTheContractsKeys) {
  const Outcome outcome =
      run("cost --algorithm ring --ranks 8 --straggler 1:0.5 --segments 2 --size 1MiB "
          "--port-model one_port --json");
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["algorithm"], "ring");
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["segments"], 2);
  EXPECT_EQ(json["size_bytes"], 1 << 20);
  EXPECT_EQ(json["stragglers"], nlohmann::json::parse(R"([{"rank": 1, "r": 0.5}])"));
  EXPECT_EQ(json["port_model"], "one_port");
  EXPECT_NEAR(json["time_over_ring"], 2, 1e-9);
  EXPECT_NEAR(json["bound_over_ring"], 8.0 / 7, 1e-9);
  EXPECT_NEAR(json["time_over_bound"], 1.75, 1e-9);
  EXPECT_EQ(json["messages_per_rank_max"], 28);
  EXPECT_EQ(json["depth"], 14);
}

TEST(ScheduleCommandTest, BothModelsOfPortsAreCostedUnlessOneIsAskedFor) {
  // Three quarters left of one of four ranks: one port at a time costs more than shared ports.
  const std::string optcc = "cost --algorithm optcc --ranks 4 --straggler 1:0.75 --segments 32 ";
  const auto both = nlohmann::json::parse(run(optcc + "--alpha 0.001 --json").out);
  EXPECT_EQ(both["port_model"], "fluid");
  EXPECT_EQ(both["time_over_ring"], both["models"]["fluid"]["time_over_ring"]);
  for (const char* model : {"fluid", "one_port"}) {
    SCOPED_TRACE(model);
    const auto alone =
        nlohmann::json::parse(run(optcc + "--alpha 0.001 --json --port-model " + model).out);
    EXPECT_EQ(alone["port_model"], model);
    EXPECT_EQ(alone["models"].size(), 1U);
    EXPECT_EQ(alone["time_over_ring"], both["models"][model]["time_over_ring"]);
    EXPECT_EQ(alone["bound_over_ring"], both["models"][model]["bound_over_ring"]);
    EXPECT_EQ(alone["time_over_bound"], both["models"][model]["time_over_bound"]);
  }
  // Latency is in the ring that all is over, but not in the bound.
  const double ring = 1.5 + 6 * 0.001;
  EXPECT_DOUBLE_EQ(both["models"]["fluid"]["bound_over_ring"], 1.6 / ring);
  EXPECT_DOUBLE_EQ(both["models"]["one_port"]["bound_over_ring"], 6 / 3.5 / ring);

  const std::string text = run(optcc).out;
  EXPECT_THAT(text, HasSubstr("fluid     one_port\n"));
  EXPECT_THAT(text, HasSubstr("  bound / fault-free ring  1.0667    1.1429\n"));
  EXPECT_THAT(text, HasSubstr("one_port: of macro steps"));
  EXPECT_THAT(run(optcc + "--port-model fluid").out, ::testing::Not(HasSubstr("one_port")));
  EXPECT_THAT(run(optcc + "--alpha 0.001").out, HasSubstr("latency 0.001, per message 0 of"));
}

TEST(ScheduleCommandTest, ShowPrintsOperations) {
  const Outcome outcome = run("show --algorithm ring --ranks 2 --size 32 --rank 0");
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_THAT(outcome.out, HasSubstr("rank 0 lane 0: 4 operations\n"));
  EXPECT_THAT(outcome.out, HasSubstr("     3  send        to 1       [4, 8)  after 0.0:4\n"));
}

TEST(ScheduleCommandTest, AlphaIsAShareOrADuration) {
  const auto alpha = [](const std::string& flags) {
    const Outcome outcome =
        run("cost --algorithm ring --ranks 2 --size 1000000 --json --alpha " + flags);
    return outcome.exitCode == 0 ? nlohmann::json::parse(outcome.out)["alpha"].get<double>() : -1;
  };
  EXPECT_EQ(alpha("0.25"), 0.25);
  // 1 MB at 8 Gbit/s takes 1 ms.
  EXPECT_NEAR(alpha("250us --bandwidth 8Gbit"), 0.25, 1e-12);
  EXPECT_EQ(alpha("250us"), -1);
  EXPECT_EQ(alpha("-1"), -1);
}

TEST(ScheduleCommandTest, StragglersMayDifferPerDirection) {
  const Outcome outcome =
      run("cost --algorithm chain_broadcast --ranks 4 --straggler 1:0.5/1 --segments 64 --json");
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["stragglers"],
            nlohmann::json::parse(R"([{"rank": 1, "r": 0.5, "send": 0.5, "receive": 1.0}])"));
  EXPECT_NEAR(json["time_over_ring"], 1, 0.05);
}

TEST(ScheduleCommandTest, LostRailsAndNodesAreCosted) {
  const auto timeOf = [](const std::string& flags) {
    const Outcome outcome = run("cost --ranks 8 --json " + flags);
    EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["time_over_ring"].get<double>();
  };
  const std::string lost = "--algorithm ring --rails 4 --lost-rail 1:0 --lost-rail 2:1 ";
  EXPECT_NEAR(timeOf(lost), 2, 1e-6);
  EXPECT_NEAR(timeOf(lost + "--rerank"), 4.0 / 3, 1e-6);
  EXPECT_NEAR(timeOf("--algorithm optcc_server --ranks-per-node 2 --segments 64 --straggler 3:0.5"),
              8.0 / 7, 0.05);
}

TEST(ScheduleCommandTest, SenselessRequestsAreUsageErrors) {
  for (const char* bad :
       {"verify",
        "verify --algorithm ring",
        "verify --algorithm nope --ranks 2",
        "verify --algorithm ring --ranks 0",
        "verify --algorithm ring --ranks 2 --size 3x",
        "verify --algorithm ring --ranks 2 --size -1",
        "verify --algorithm ring --ranks 2 --segments 0",
        "cost --algorithm ring --ranks 2 --straggler 2:0.5",
        "cost --algorithm ring --ranks 2 --straggler 1",
        "cost --algorithm ring --ranks 2 --straggler 1:0",
        "cost --algorithm ring --ranks 2 --straggler 1:nan",
        "cost --algorithm ring --ranks 2 --straggler 1:0.5 --straggler 1:0.25",
        "cost --algorithm ring --ranks 2 --port-model none",
        "cost --algorithm ring --ranks 2 --straggler 1:0.5/0",
        "cost --algorithm ring --ranks 2 --lost-rail 1:0",
        "cost --algorithm ring --ranks 2 --rails 2 --lost-rail 1:2",
        "cost --algorithm ring --ranks 2 --rails 1 --lost-rail 1:0",
        "cost --algorithm ring --ranks 2 --rails 2 --lost-rail 1:0 --straggler 0:0.5",
        "cost --algorithm ring_all_gather --ranks 2 --rails 2 --lost-rail 1:0 --rerank",
        "cost --algorithm optcc_server --ranks 3 --ranks-per-node 2",
        "show --algorithm ring --ranks 2 --dtype f8",
        "show --algorithm ring --ranks 2 --rank 2"}) {
    EXPECT_EQ(run(bad).exitCode, 2) << bad;
  }
}

TEST(ScheduleCommandTest, MscclXmlThereAndBack) {
  const Outcome shown = run("show --algorithm optcc --ranks 4 --size 480 --format msccl-xml");
  ASSERT_EQ(shown.exitCode, 0) << shown.err;
  const std::string path = testing::TempDir() + "/optcc.xml";
  std::ofstream(path) << shown.out;
  const Outcome verified = run("verify --import " + path + " --size 480 --json");
  EXPECT_EQ(verified.exitCode, 0) << verified.err;
  EXPECT_EQ(nlohmann::json::parse(verified.out)["ranks"], 4);
  const auto ratio = [&](const std::string& which) {
    const Outcome costed = run("cost " + which + " --size 480 --straggler 1:0.5 --json");
    return nlohmann::json::parse(costed.out)["time_over_ring"].get<double>();
  };
  // Made for healthy ranks, and so slower than what knows of the straggler.
  EXPECT_GT(ratio("--import " + path), 1.3);
  std::remove(path.c_str());
  EXPECT_THAT(run("verify --import " + path).err, HasSubstr("cannot be read"));
  for (const std::string& wrong : {path, std::string("/")}) {  // gone, and a folder
    const Outcome outcome = run("verify --import " + wrong);
    EXPECT_EQ(outcome.exitCode, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--import " + wrong));
  }
  EXPECT_EQ(run("verify --import x --algorithm ring --ranks 2").exitCode, 2);
  EXPECT_EQ(run("verify").exitCode, 2);
}

TEST(ScheduleCommandTest, AnAllToAllHasTheSizeOfItsEqualBlocks) {
  const Outcome shown =
      run("show --algorithm pairwise_all_to_all --ranks 4 --size 64 --format msccl-xml");
  ASSERT_EQ(shown.exitCode, 0) << shown.err;
  const std::string path = testing::TempDir() + "/pairwise.xml";
  std::ofstream(path) << shown.out;
  for (const std::string& which :
       {"--import " + path, std::string("--algorithm pairwise_all_to_all --ranks 4")}) {
    // 1025 elements of data are 1028 in four equal blocks; the buffer of the schedule has two such.
    // 4112 bytes take 1.028 us at 32 Gbit.
    const Outcome outcome =
        run("cost --size 4100 --alpha 1028ns --bandwidth 32Gbit --json " + which);
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["elements"], 1028) << which;
    EXPECT_EQ(json["size_bytes"], 4112) << which;
    EXPECT_DOUBLE_EQ(json["alpha"].get<double>(), 1) << which;
    EXPECT_THAT(run("cost --size 4100 " + which).out, HasSubstr("4112B")) << which;
  }
  std::remove(path.c_str());
}

TEST(ScheduleCommandTest, AFileDoesNotTellHowManySegmentsItHas) {
  const Outcome shown =
      run("show --algorithm optcc --ranks 4 --segments 5 --size 4800 --format msccl-xml");
  ASSERT_EQ(shown.exitCode, 0) << shown.err;
  const std::string path = testing::TempDir() + "/segments.xml";
  std::ofstream(path) << shown.out;
  const std::string imported = "cost --size 4800 --import " + path;
  EXPECT_TRUE(nlohmann::json::parse(run(imported + " --json").out).at("segments").is_null());
  EXPECT_THAT(run(imported).out, HasSubstr("optcc, 4 ranks, from a file, "));
  std::remove(path.c_str());
  const std::string made = "cost --size 4800 --algorithm optcc --ranks 4 --segments ";
  EXPECT_EQ(nlohmann::json::parse(run(made + "5 --json").out)["segments"], 5);
  EXPECT_THAT(run(made + "5").out, HasSubstr("optcc, 4 ranks, 5 segments, "));
  EXPECT_THAT(run(made + "1").out, HasSubstr("optcc, 4 ranks, 1 segment, "));
}

TEST(ScheduleCommandTest, WhatMessagesCostSaysHowManySegments) {
  const auto segments = [](const std::string& flags) {
    const Outcome outcome =
        run("cost --algorithm optcc --ranks 8 --straggler 1:0.5 --json " + flags);
    EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["segments"].get<int>();
  };
  EXPECT_EQ(segments(""), 64) << "within 1 % of 128 segments";
  // sqrt(load 2 / (7 messages x 0.0015)) = 14.
  EXPECT_EQ(segments("--per-message 0.0015"), 16);
  EXPECT_EQ(segments("--per-message 0.0015 --segments 3"), 3);
}

TEST(ScheduleCommandTest, WhatShowPrintsAsJsonIsReadAgain) {
  const std::string path = testing::TempDir() + "/shown.json";
  const std::string flags =
      "--algorithm optcc --ranks 4 --straggler 1:0.3 --segments 4 --size 4800";
  std::ofstream(path) << run("show --json --max-ops -1 " + flags).out;
  EXPECT_THAT(run("verify --import " + path).out, HasSubstr("correct"));
  const auto cost = [&](const std::string& of) {
    const Outcome outcome = run("cost --json --size 4800 --straggler 1:0.3 " + of);
    EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["time_over_ring"].get<double>();
  };
  EXPECT_DOUBLE_EQ(cost("--import " + path), cost("--algorithm optcc --ranks 4 --segments 4"));
  std::ofstream(path) << run("show --json --max-ops 2 " + flags).out;
  EXPECT_THAT(run("verify --import " + path).err, HasSubstr("--max-ops -1"));
  std::remove(path.c_str());
}

TEST(ScheduleCommandTest, CostAndShowTakeTheBestNumberOfSegments) {
  const std::string optcc = "cost --algorithm optcc --ranks 4 --straggler 1:0.5";
  const auto json = nlohmann::json::parse(run(optcc + " --json").out);
  EXPECT_EQ(json["segments_chosen"], true);
  EXPECT_LT(json["time_over_ring"], 1.375) << "what 32 segments take; a ring takes 2";
  EXPECT_THAT(run(optcc).out, HasSubstr("64 segments (the best by the model)"));
  double best = 1e9;
  for (int k = 1; k <= 128; k *= 2) {
    const auto of =
        nlohmann::json::parse(run(fmt::format("{} --json --segments {}", optcc, k)).out);
    EXPECT_EQ(of["segments_chosen"], false);
    best = std::min(best, of["time_over_ring"].get<double>());
  }
  EXPECT_LE(json["time_over_ring"].get<double>(), best * 1.01);
  EXPECT_THAT(run("show --max-ops 1 --algorithm optcc --ranks 4").err, HasSubstr("64 segments"));
  // Of a few elements there are no more segments than ranks can share.
  EXPECT_LE(nlohmann::json::parse(run(optcc + " --json --size 64").out)["segments"], 4);
  // What is proved is what always was.
  EXPECT_EQ(nlohmann::json::parse(
                run("verify --json --algorithm optcc --ranks 4 --straggler 1:0.5").out)["segments"],
            1);
}

TEST(ScheduleCommandTest, AnExportWithoutASizeFits) {
  const std::string path = testing::TempDir() + "/exported.xml";
  for (const std::string wanted :
       {"optcc --ranks 4 --straggler 1:0.5", "optcc --ranks 4 --straggler 1:0.75",
        "optcc --ranks 8", "ring --ranks 3", "r2_allreduce --ranks 4 --straggler 2:0.5",
        "tree --ranks 5", "pairwise_all_to_all --ranks 3", "halving_doubling --ranks 8"}) {
    const Outcome shown = run("show --format msccl-xml --algorithm " + wanted);
    ASSERT_EQ(shown.exitCode, 0) << wanted << ": " << shown.err;
    std::ofstream(path) << shown.out;
    const Outcome verified = run("verify --import " + path);
    EXPECT_EQ(verified.exitCode, 0) << wanted << ": " << verified.out << verified.err;
    // And again, from the file.
    const Outcome again = run("show --format msccl-xml --import " + path);
    EXPECT_EQ(again.exitCode, 0) << wanted << ": " << again.err;
    std::ofstream(path) << again.out;
    EXPECT_EQ(run("verify --import " + path).exitCode, 0) << wanted;
  }
  std::remove(path.c_str());
}

TEST(ScheduleCommandTest, AnExportThatDoesNotFitNamesASizeThatDoes) {
  const std::string wanted =
      "show --format msccl-xml --algorithm optcc --ranks 4 --straggler 1:0.5 ";
  const Outcome refused = run(wanted + "--size 67108864 --segments 3");
  EXPECT_EQ(refused.exitCode, 2);
  const std::size_t begin = refused.err.find("--size ");
  ASSERT_NE(begin, std::string::npos) << refused.err;
  const std::string named = refused.err.substr(begin, refused.err.find('\'', begin) - begin);
  EXPECT_EQ(run(wanted + named).exitCode, 0) << named;
}

TEST(ScheduleCommandTest, AnImportThatIsNoFileIsNamed) {
  EXPECT_THAT(run("verify --import /dev/zero").err, HasSubstr("it is a device"));
  EXPECT_THAT(run("verify --import /").err, HasSubstr("it is a folder"));
  EXPECT_EQ(run("verify --import /dev/zero").exitCode, 2);
}

TEST(ScheduleCommandTest, TooFewRanksAreNamed) {
  for (const std::string ranks : {"0", "-3"}) {
    const Outcome outcome = run("cost --algorithm ring --ranks " + ranks);
    EXPECT_EQ(outcome.exitCode, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--ranks " + ranks + ": at least 1"));
  }
}

TEST(ScheduleCommandTest, WhatIsTooMuchToPlayIsCostedFromStepsAndSaysSo) {
  const std::string many =
      "cost --algorithm optcc --segments 64 --straggler 1:0.75 --port-model fluid --ranks ";
  EXPECT_THAT(run(many + "128").out, HasSubstr("macro steps"));
  EXPECT_THAT(run(many + "8").out, ::testing::Not(HasSubstr("macro steps")));
}

}  // namespace
}  // namespace faultline::cli
