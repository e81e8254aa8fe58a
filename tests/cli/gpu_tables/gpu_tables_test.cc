#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/collectives_text.h"
#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::runProgram;
using testing::TemporaryFolder;
using Json = nlohmann::json;

const std::string kScript = FAULTLINE_SOURCE_DIR "/ci/gpu/table.sh";

/// A result of scenarios/gpu, as far as ci/gpu/tables.py reads it.
class GpuTables : public ::testing::Test {
 protected:
  void SetUp() override {
    if (runProgram("/usr/bin/env", {"python3", "--version"}).exit != 0) {
      GTEST_SKIP() << "there is no python3";
    }
    result_ = {
        {"scenario",
         {{"name", "gpu-test"}, {"cluster", {{"nodes", 4}, {"rails", 2}, {"rail_rate", "4Gbit"}}}}},
        {"runs", Json::array()}};
  }

  /// Calls one after the other, 100 ms for each besides its own time, from 0 ms on.
  void addRun(const std::string& row, const std::string& printed, std::vector<double> calls = {},
              Json faults = Json::array(), const std::string& counters = "") {
    const std::string folder = "command-" + row + "-0/rank0";
    std::filesystem::create_directories(folder_.path() / folder);
    Json iterations = Json::array();
    std::string text = printed;
    double at = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      text += fmt::format("# call {} 67108864 out-of-place time_us {:.1f}\n", i, calls[i] * 1000);
      iterations.push_back({{"index", i}, {"start_ms", at}, {"ms", calls[i] + 100}});
      at += calls[i] + 100;
    }
    folder_.write(folder + "/stdout.txt", text);
    if (!counters.empty()) folder_.write(folder + "/counters.json", counters);
    result_["runs"].push_back({{"strategy", row},
                               {"block", 0},
                               {"status", "ok"},
                               {"duration_ms", at},
                               {"iterations", iterations},
                               {"faults", std::move(faults)},
                               {"processes", {{{"exit_code", 0}}}},
                               {"metrics", {{"bus", {{"value", 0.5}, {"unit", "GB/s"}}}}}});
  }

  static Json fault(const char* kind, double begin, double end, double percent) {
    return {{"kind", kind},
            {"parameters", {{"rate", "50%"}}},
            {"start_ms", begin},
            {"end_ms", end},
            {"hit", {{"progress_pct", percent}}}};
  }

  /// `exit`: 1 where a target is missed.
  std::string table(const char* kind, int exit = 0) {
    writeResult();
    const Ran ran = runProgram("/usr/bin/env", {"python3", FAULTLINE_SOURCE_DIR "/ci/gpu/tables.py",
                                                kind, folder_.path().string()});
    EXPECT_EQ(ran.exit, exit) << ran.err;
    return ran.out;
  }

  void writeResult() { folder_.write("result.json", result_.dump()); }

  TemporaryFolder folder_;
  Json result_;
};

/// `wrongInPlace`: it was also made in place, with so many wrong elements.
std::string line(std::int64_t size, double ms, std::int64_t wrong,
                 std::optional<std::int64_t> wrongInPlace = {}) {
  reports::CollectiveRow row;
  row.operation = "all_reduce";
  row.size_bytes = size;
  row.count = size / 4;
  row.dtype = "f32";
  row.op = "sum";
  row.p50_ms = ms;
  row.algbw = static_cast<double>(size) / ms / 1e6;
  row.busbw = row.algbw * 1.5;
  row.wrong_elements = wrong;
  reports::CollectiveRow inPlace = row;
  inPlace.wrong_elements = wrongInPlace.value_or(0);
  return reports::collectivesLine(&row, wrongInPlace ? &inPlace : nullptr);
}

TEST_F(GpuTables, SweepHoldsThePluginAgainstTheBestOfTheOthers) {
  addRun("socket", "# Ranks share GPUs: 4 ranks on 1\n" + line(8192, 0.2, 0) + line(1 << 20, 2, 0));
  addRun("socket_4x4", line(8192, 0.4, 0) + line(1 << 20, 1.5, 0));
  addRun("plugin", line(8192, 0.25, 3) + line(1 << 20, 1, 0));
  const std::string text = table("sweep", 1);
  EXPECT_THAT(text, HasSubstr("4 nodes of 2 rails of 4Gbit; Ranks share GPUs: 4 ranks on 1"));
  EXPECT_THAT(text, HasSubstr("| size | socket | socket_4x4 | plugin | plugin / best without |"));
  EXPECT_THAT(text, HasSubstr("| 8 KiB | 0.49 (200 us) | 0.25 (400 us) | 0.39 (250 us) **3 wrong** "
                              "| 0.800 (0.80 to 0.80) |"));
  EXPECT_THAT(text, HasSubstr("| 1.500 (1.50 to 1.50) |"));
}

TEST_F(GpuTables, CollectivesAreByNameSizeAndRow) {
  addRun("socket", "#\n# all_reduce\n#\n" + line(1 << 20, 2, 0) +
                       "# Out of bounds values : 0 OK\n" + "# send_recv\n" + line(1 << 20, 0.5, 0));
  addRun("plugin", "# all_reduce\n" + line(1 << 20, 1, 3, 4));
  const std::string text = table("collectives");
  EXPECT_THAT(text, HasSubstr("| collective | size | socket | plugin |"));
  EXPECT_THAT(text,
              HasSubstr("| all_reduce | 1 MiB | 2000 (2000 to 2000) | 1000 (1000 to 1000) **7 "
                        "wrong** |"));
  EXPECT_THAT(text, HasSubstr("| send_recv | 1 MiB | 500 (500 to 500) | - |"));
}

TEST_F(GpuTables, APauseIsWhatOneNicLessDoesNotExplain) {
  // Half of the call at full speed, the rest at half: 100 / 2 + 200 / 2 = 150 ms are expected; 10
  // more, and 5 more of the next.
  addRun("plugin", "", {100, 100, 160, 205, 100, 100, 130, 200},
         Json::array({fault("port_down", 450, 700, 50), fault("port_down", 1400, 1700, 80)}),
         R"({"peers": [{"longest_pause_ms": 2.5, "failovers": 1},
                       {"longest_pause_ms": 7.25, "failovers": 1}]})");
  const std::string text = table("pauses", 1);
  // The second: 80 % of 100 and 20 % of 200 are 120, so 10.
  EXPECT_THAT(
      text,
      HasSubstr("| port_down | plugin | 2 | 2 | 0 | 100.0 | 12.5 | 15.0 | 147.5 | 165.0 | 7.2 "
                "| 2 of 2 | 2 | - | ok |"));
}

TEST_F(GpuTables, AfterAResetTheNicIsExplainedToBeAwayForTheHoldOffAlone) {
  // 50 ms of one of two NICs are 25 ms: 5 more. At 90 % the call has 10 of these, the next one 15:
  // 3 more of each.
  addRun("plugin", "", {100, 100, 130, 100, 100, 100, 113, 118},
         Json::array(
             {fault("connection_reset", 450, 460, 50), fault("connection_reset", 1330, 1340, 90)}));
  EXPECT_THAT(table("pauses", 1), HasSubstr("| connection_reset | plugin | 2 | 2 | 0 | 100.0 | 5.5 "
                                            "| 6.0 | 30.5 | 31.0 |"));
}

// Else it would be read as one of all connections, which costs more.
TEST_F(GpuTables, AResetOfOneConnectionIsNamedAsSuch) {
  Json one = fault("connection_reset", 450, 460, 50);
  one["parameters"]["connections"] = "one";
  Json all = fault("connection_reset", 1330, 1340, 90);
  all["parameters"]["connections"] = "all";
  addRun("plugin", "", {100, 100, 130, 100, 100, 100, 113, 118}, Json::array({one, all}));
  EXPECT_THAT(table("pauses", 1),
              HasSubstr("| connection_reset of one, connection_reset | plugin | 2 |"));
}

TEST_F(GpuTables, ACallThatIsNeverOverIsNoPause) {
  addRun("stock", "", {100, 100}, Json::array({fault("port_down", 450, 9000, 50)}));
  EXPECT_THAT(table("pauses"),
              HasSubstr("| port_down | stock | 1 | 0 | 1 | 100.0 | - | - | - | - | - |"));
}

TEST_F(GpuTables, SharesComparesBeforeDuringAndAfter) {
  // Down from call 2 to call 5, which is the last slow one but one; whole from call 7 on.
  addRun("plugin", "", {100, 100, 150, 200, 200, 200, 180, 101, 100},
         Json::array({fault("throttle", 450, 1300, 50)}));
  // Call 5 begins at 1250, call 7 at 1830.
  EXPECT_THAT(table("shares", 1),
              HasSubstr("| throttle rate=50% | plugin | 2 | 100.0 | 2.000 | 200.0 | 530 |"));
}

TEST_F(GpuTables, SweepIsMetAtTheSameBandwidthAndAlmostTheSameTimeOfShortCalls) {
  addRun("socket", line(8192, 0.2, 0) + line(1 << 20, 2, 0));
  addRun("socket_4x4", line(8192, 0.4, 0) + line(1 << 20, 1.5, 0));
  addRun("plugin", line(8192, 0.21, 0) + line(1 << 20, 1.5, 0));
  const std::string text = table("sweep");
  EXPECT_THAT(text, HasSubstr("\n- met: bandwidth from 1 MiB on over the best without the plugin, "
                              "measured the least 1.0000 at 1 MiB, to reach at least 1.00\n"));
  EXPECT_THAT(text, HasSubstr("\n- met: bandwidth below 1 MiB over the best without the plugin, "
                              "measured the least 0.9524 at 8 KiB, to reach at least 0.952, which "
                              "is 1.05 of its time\n"));
  EXPECT_THAT(text, Not(HasSubstr("MISSED")));
}

TEST_F(GpuTables, SweepNamesEachSizeThatMissesItsTarget) {
  addRun("socket", line(8192, 0.2, 0) + line(16384, 0.2, 0) + line(1 << 20, 1.5, 0) +
                       line(2 << 20, 3, 0) + line(4 << 20, 6, 0));
  addRun("plugin", line(8192, 0.212, 0) + line(16384, 0.2, 0) + line(1 << 20, 1.51, 0) +
                       line(2 << 20, 3, 0) + line(4 << 20, 8, 0));
  const std::string text = table("sweep", 1);
  EXPECT_THAT(text, HasSubstr("\n- MISSED: bandwidth from 1 MiB on over the best without the "
                              "plugin, measured 0.9934 at 1 MiB, 0.7500 at 4 MiB, to reach"));
  EXPECT_THAT(text, HasSubstr("\n- MISSED: bandwidth below 1 MiB over the best without the plugin, "
                              "measured 0.9434 at 8 KiB, to reach"));
}

TEST_F(GpuTables, RowsThatAreNotThereAreNotJudged) {
  addRun("socket", line(8192, 0.2, 0));
  addRun("socket_4x4", line(8192, 0.1, 0));
  const std::string text = table("sweep");
  EXPECT_THAT(text, Not(::testing::AnyOf(HasSubstr("met:"), HasSubstr("MISSED"))));
}

/// `late`: by so many ms, in turn, a call that is struck in its middle is longer than one NIC less
/// explains, for half of the call, and after a reset for 50 ms; the next one takes `next`.
struct Struck {
  const char* kind = "port_down";
  int faults = 30;
  std::vector<double> late{10};
  double next = 100;
  std::int64_t wrong = 0;
  int failovers = -1;  // four for each fault
};

class GpuTargets : public GpuTables {
 protected:
  void strike(const Struck& struck, const char* row = "plugin") {
    constexpr double kCall = 100;  // and as much for its check: see addRun()
    constexpr int kApart = 12;
    std::vector<double> calls;
    Json faults = Json::array();
    double at = 0;
    const auto call = [&](double ms) {
      calls.push_back(ms);
      at += ms + 100;
    };
    for (int number = 0; number < struck.faults; ++number) {
      while (std::ssize(calls) % kApart != kApart - 2) call(kCall);
      const bool reset = struck.kind == std::string_view("connection_reset");
      faults.push_back(fault(struck.kind, at + 50, at + (reset ? 60 : 350), 50));
      call((reset ? 1.25 : 1.5) * kCall +
           struck.late[static_cast<std::size_t>(number) % struck.late.size()]);
      call(struck.next);
    }
    call(kCall);
    const int failovers = struck.failovers < 0 ? 4 * struck.faults : struck.failovers;
    const Json peer{{"longest_pause_ms", 1}, {"failovers", failovers}};
    addRun(row, line(64 << 20, kCall, struck.wrong), calls, faults,
           Json{{"peers", Json::array({peer})}}.dump());
  }
};

TEST_F(GpuTargets, PausesOfThirtyFaultsAreMet) {
  strike({.late = {10, 10, 50}, .next = 200});
  const std::string text = table("pauses");
  EXPECT_THAT(text,
              HasSubstr("\n- met: port_down: faults counted, measured 30, to reach at least "
                        "30\n- met: port_down: pause p50, measured 10.0 ms, to reach at most "
                        "10 ms\n- met: port_down: longest pause, measured 50.0 ms, to reach "
                        "at most 50 ms\n- met: port_down: failovers, measured 120, to reach at "
                        "least 120\n- met: port_down: elements that are wrong, measured "
                        "0, to reach 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("MISSED")));
  EXPECT_THAT(text, HasSubstr("| 30 of 30 | 120 | 0 | ok |"));
}

TEST_F(GpuTargets, TheNextCallWithoutANicIsCountedAlthoughItIsNoPause) {
  for (const double next : {179, 180}) {
    result_["runs"].clear();
    strike({.late = {1}, .next = next});
    EXPECT_THAT(table("pauses"),
                HasSubstr(next < 180 ? "| 0 of 30 | 120 | 0 | ok |" : "| 30 of 30 |"));
  }
}

TEST_F(GpuTargets, ABlackHoleMayTakeLonger) {
  strike({.kind = "blackhole", .late = {5, 5, 200}});
  EXPECT_THAT(table("pauses"), HasSubstr("met: blackhole: longest pause, measured 200.0 ms"));
}

TEST_F(GpuTargets, EachTargetOfPausesCanBeMissed) {
  const std::vector<std::pair<Struck, std::string>> cases{
      {{.faults = 29}, "port_down: faults counted, measured 29, to reach at least 30"},
      {{.late = {11}}, "port_down: pause p50, measured 11.0 ms, to reach at most 10 ms"},
      {{.late = {1, 1, 51}}, "port_down: longest pause, measured 51.0 ms, to reach at most 50 ms"},
      {{.kind = "connection_reset", .late = {1, 1, 51}},
       "connection_reset: longest pause, measured 51.0 ms, to reach at most 50 ms"},
      {{.kind = "blackhole", .late = {1, 1, 201}},
       "blackhole: longest pause, measured 201.0 ms, to reach at most 200 ms"},
      {{.failovers = 119}, "port_down: failovers, measured 119, to reach at least 120"},
      {{.wrong = 2}, "port_down: elements that are wrong, measured 2, to reach 0"}};
  for (const auto& [struck, missed] : cases) {
    SCOPED_TRACE(missed);
    result_["runs"].clear();
    strike(struck);
    const std::string text = table("pauses", 1);
    EXPECT_THAT(text, HasSubstr("\n- MISSED: " + missed + "\n"));
    EXPECT_EQ(text.find("MISSED"), text.rfind("MISSED")) << text;
  }
}

TEST_F(GpuTargets, NothingIsAskedOfStockNcclAndOfASingleFault) {
  strike({.late = {80}}, "stock");
  strike({.faults = 1, .late = {80}});
  EXPECT_THAT(table("pauses"), Not(HasSubstr("MISSED")));
}

// All programs but the script and tables.py are pretended: each scenario has the result of this
// test.
TEST_F(GpuTargets, TheScriptEndsWithOneWhenATargetIsMissed) {
  const TemporaryFolder programs;
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"nvidia-smi", "echo 'GPU 0: pretended'"},
           {"nccl_bench", ""},
           {"faultline",
            "if [ $1 = run ]; then cp -r '" + folder_.path().string() + "' \"$4\"; fi"}}) {
    std::filesystem::permissions(programs.write(name, "#!/bin/sh\n" + text + "\n"),
                                 std::filesystem::perms::owner_all);
  }
  const std::string place = programs.path().string();
  for (const bool missed : {false, true}) {
    SCOPED_TRACE(missed);
    result_["runs"].clear();
    strike({.kind = "blackhole", .late = {missed ? 201.0 : 5.0}});
    writeResult();
    const std::string out = place + (missed ? "/missed" : "/met");
    const Ran ran = runProgram("/usr/bin/env", {"PATH=" + place + ":/usr/bin:/bin", "GPU_BUILD=no",
                                                "GPU_BUILD_DIRECTORY=" + place, "bash", kScript,
                                                "--part", "3", "--out", out});
    EXPECT_EQ(ran.exit, missed ? 1 : 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(missed ? "- MISSED: blackhole: longest pause, measured 201.0 ms"
                                          : "- met: blackhole: longest pause, measured 5.0 ms"));
    EXPECT_THAT(ran.out, HasSubstr("| scenario | row |")) << "the tables after it are made, too";
  }
}

/// Call 2 is struck at 450 ms; calls 3 and 4 take `during`, call 5 the end, `after` follow.
struct Lasting {
  const char* kind = "port_down";
  double during = 200;
  std::vector<double> after{100};
};

class GpuShares : public GpuTables {
 protected:
  void run(const Lasting& lasting) {
    std::vector<double> calls{100, 100, 150, lasting.during, lasting.during, 150};
    const double end = 650 + 2 * (lasting.during + 100) + 50;
    calls.insert(calls.end(), lasting.after.begin(), lasting.after.end());
    Json struck = fault(lasting.kind, 450, end, 50);
    if (struck["kind"] != "throttle") struck["parameters"] = Json::object();
    addRun("plugin", "", calls, Json::array({struck}));
  }
};

TEST_F(GpuShares, ASlowNicIsMetAtTheBalanceModel) {
  // 4 / 3 of the time, and 5 % more.
  run({.kind = "throttle", .during = 139.9});
  EXPECT_THAT(table("shares"), HasSubstr("\n- met: 1 of 2 NICs at 50%: time during / before, "
                                         "measured 1.399, to reach at most 1.400, which is 1.05 of "
                                         "the balance model's 1.333\n"));
}

TEST_F(GpuShares, ALostNicIsMetAtWhatIsLeft) {
  run({.during = 206});
  EXPECT_THAT(table("shares"),
              HasSubstr("\n- met: 1 of 2 NICs gone: share used of the bandwidth that is left, "
                        "measured 0.971, to reach at least 0.97\n- met: 1 of 2 NICs gone: full "
                        "speed after its return, measured 200.0 ms, to reach at most 2000 ms\n"));
}

TEST_F(GpuShares, EachTargetOfSharesCanBeMissed) {
  const std::vector<double> slow(9, 150);
  std::vector<double> late = slow;
  late.push_back(100);
  std::vector<double> relapsing = late;
  relapsing[4] = 100;
  const std::vector<std::pair<Lasting, std::string>> cases{
      {{.kind = "throttle", .during = 140.1},
       "1 of 2 NICs at 50%: time during / before, measured "},
      {{.during = 207}, "1 of 2 NICs gone: share used of the bandwidth that is left, measured "},
      {{.after = late}, "1 of 2 NICs gone: full speed after its return, measured 2450.0 ms"},
      {{.after = relapsing}, "1 of 2 NICs gone: full speed after its return, measured 2400.0 ms"},
      {{.after = slow}, "1 of 2 NICs gone: full speed after its return, measured nothing"}};
  for (const auto& [lasting, missed] : cases) {
    SCOPED_TRACE(missed);
    result_["runs"].clear();
    run(lasting);
    const std::string text = table("shares", 1);
    EXPECT_THAT(text, HasSubstr("\n- MISSED: " + missed));
    EXPECT_EQ(text.find("MISSED"), text.rfind("MISSED")) << text;
  }
}

TEST_F(GpuTables, EndsSaysHowEachRunEnded) {
  addRun("plugin", "", {100}, Json::array({fault("port_down", 50, 100, 50)}));
  EXPECT_THAT(table("ends"), HasSubstr("| gpu-test | plugin | 1 | ok | 0 | 0.1 | bus 0.5 |"));
}

TEST_F(GpuTables, WithoutArgumentsItSaysWhatItWants) {
  const Ran ran =
      runProgram("/usr/bin/env", {"python3", FAULTLINE_SOURCE_DIR "/ci/gpu/tables.py", "tables"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("tables.py sweep RESULT"));
}

TEST(GpuTableScript, WithoutAPartItSaysWhatThereIs) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"--part"},
                                             {"--part", "0"},
                                             {"--part", "10"},
                                             {"--part", "1", "--out"},
                                             {"--parts", "1"}}) {
    std::vector<std::string> all{"bash", kScript};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = runProgram("/usr/bin/env", all);
    EXPECT_EQ(ran.exit, 2) << fmt::format("{}", arguments.size());
    EXPECT_THAT(ran.err, HasSubstr("table.sh --part N"));
  }
}

TEST(GpuTableScript, WithoutAGpuItEndsBeforeItBuildsAnything) {
  const TemporaryFolder folder;
  const std::string smi = folder.write("nvidia-smi", "#!/bin/sh\necho No devices were found\n");
  std::filesystem::permissions(smi, std::filesystem::perms::owner_all);
  const std::string out = folder.path() / "out";
  const Ran ran = runProgram("/usr/bin/env", {"PATH=" + folder.path().string() + ":/usr/bin:/bin",
                                              "bash", kScript, "--part", "1", "--out", out});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("there is no GPU"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace faultline
