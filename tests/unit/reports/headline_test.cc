#include "reports/headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/bandwidth_table.h"
#include "reports/collectives_text.h"
#include "reports/terminal_summary.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A result of `blocks` blocks: fault_free, and whatever a test adds.
class Made {
 public:
  explicit Made(int blocks = 3) : blocks_(blocks) {
    result.verdict = Verdict::kPass;
    add("fault_free", std::nullopt);
  }

  /// A strategy whose runs met a fault and went well.
  Made& add(const std::string& name, std::optional<double> overhead) {
    for (int block = 0; block < blocks_; ++block) {
      Run& run = result.runs.emplace_back();
      run.strategy = name;
      run.block = block;
      run.faulted = name != "fault_free";
      run.arm = run.faulted ? Arm::kFaulted : Arm::kPlain;
      run.checked_elements = 1000;
    }
    Summary& row = result.summary.emplace_back();
    row.strategy = name;
    row.n = blocks_;
    if (overhead) row.overhead_pct = Overhead{*overhead};
    return *this;
  }

  /// Changes the runs of the strategy that was added last.
  template <typename Change>
  Made& each(Change change) {
    for (Run& run : result.runs) {
      if (run.strategy == result.summary.back().strategy) change(run);
    }
    return *this;
  }

  Made& pauses(double ms) {
    return each([&](Run& run) {
      run.failovers.resize(1);
      run.failovers[0].pause_ms = ms;
    });
  }

  Made& ends(RunStatus status) {
    return each([&](Run& run) { run.status = status; });
  }

  Made& restarts(std::optional<double> usual_ms) {
    return ends(RunStatus::kHung).each([&](Run& run) {
      run.restarts.resize(1);
      run.restarts[0].unscaled_total_ms = usual_ms;
    });
  }

  Made& expects(const std::string& text, bool pass, bool is_void = false) {
    result.expectations.push_back({text, 1, pass, "", is_void});
    return *this;
  }

  std::string line() const { return headline(result); }

  ScenarioResult result;

 private:
  int blocks_;
};

TEST(HeadlineTest, ASurvivorBesideAStockLibrary) {
  Made made;
  made.add("fail_stop", 42.6).restarts(600'345).add("hot_repair", 15.1).pauses(5.04);
  EXPECT_EQ(made.line(),
            "hot_repair kept the job alive: +15 %, longest pause 5 ms; a stock library (fail_stop) "
            "had to be restarted (3 times): +43 %, and 10 min per fault with its usual watchdog.");
}

TEST(HeadlineTest, OfTheSampleItIsOneLineThatEndsWithAFullStop) {
  const std::string line = headline(testing::sampleResult());
  EXPECT_THAT(line, StartsWith("hot_repair kept the job alive: +"));
  EXPECT_THAT(line, HasSubstr("; a stock library (fail_stop) had to be restarted (3 times): +"));
  EXPECT_THAT(line, EndsWith("."));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST(HeadlineTest, OneThatDidNotSurviveIsNamedAfterThePass) {
  Made made(2);
  made.add("hot_repair", 3.44).add("unprotected", std::nullopt).ends(RunStatus::kFailed);
  made.each([](reports::Run& run) { run.processes.resize(1); });
  EXPECT_EQ(made.line(),
            "hot_repair kept the job alive: +3.4 %; the program as it is (unprotected) did not "
            "survive: 2 of 2 runs failed.");
  made.expects("unprotected.status == failed", true);
  EXPECT_THAT(made.line(), EndsWith("2 of 2 runs failed, as the scenario expects."));
  made.result.runs.back().status = RunStatus::kHung;
  EXPECT_THAT(made.line(), HasSubstr("2 of 2 runs failed or hung"));
}

TEST(HeadlineTest, OneDeadRunOfThreeIsNoSurvivor) {
  Made made;
  made.add("hot_repair", 1).pauses(2);
  made.result.runs.back().status = RunStatus::kHung;
  made.result.verdict = Verdict::kError;
  made.result.reason = "hot_repair, block 3: the run hung and did not go on: x";
  EXPECT_EQ(made.line(), "hot_repair did not survive: 1 of 3 runs hung.");
}

TEST(HeadlineTest, ManySurvivorsAreARangeAndTheDeadAreStillCounted) {
  Made made;
  made.add("hot_repair", 15).add("balance", 12).pauses(31.4).add("optcc", 36).add("auto", 14);
  made.add("nccl_a", std::nullopt).ends(RunStatus::kFailed);
  for (const char* name : {"nccl_b", "nccl_c", "nccl_d"}) {
    made.add(name, std::nullopt).ends(RunStatus::kFailed);
  }
  EXPECT_EQ(made.line(),
            "4 strategies kept the job alive, from balance (+12 %, longest pause 31 ms) to optcc "
            "(+36 %); nccl_a did not survive: 3 of 3 runs failed; nccl_b did not survive: 3 of 3 "
            "runs failed; 2 likewise: nccl_c and nccl_d.");
}

TEST(HeadlineTest, WhatIsNoiseOrBetterThanPossibleIsNoNumber) {
  Made made;
  made.add("hot_repair", 0.8);
  made.result.summary.back().overhead_pct->distinguishable = false;
  EXPECT_EQ(made.line(), "hot_repair kept the job alive: no cost beyond the noise.");
  made.result.summary.back().mis_measured = true;
  EXPECT_EQ(made.line(), "hot_repair kept the job alive: mis-measured, better than possible.");
  Made faster;
  EXPECT_EQ(faster.add("hot_repair", -3).line(), "hot_repair kept the job alive: no slower.");
}

TEST(HeadlineTest, AJobThatStaysSlowAfterTheFaultIsNotFlattered) {
  Made made;
  made.add("hot_repair", 15);
  made.result.summary.back().after_pct = AfterSpread{.median = 41.2, .min = 20, .n = 3};
  EXPECT_EQ(made.line(),
            "hot_repair kept the job alive: +15 %, only 41 % of its speed in the second after the "
            "fault.");
  made.result.summary.back().after_pct->median = 97;
  EXPECT_EQ(made.line(), "hot_repair kept the job alive: +15 %.");
}

TEST(HeadlineTest, OneBlockSaysThatChanceIsNotExcluded) {
  Made made(1);
  made.add("hot_repair", 15);
  EXPECT_THAT(made.line(), EndsWith("+15 % (one run of each: chance is not excluded)."));
}

TEST(HeadlineTest, WithoutAReferenceThereIsNoCost) {
  Made made;
  made.add("hot_repair", std::nullopt).pauses(1200);
  std::erase_if(made.result.runs,
                [](const reports::Run& run) { return run.strategy == "fault_free"; });
  made.result.summary.erase(made.result.summary.begin());
  EXPECT_EQ(made.line(),
            "hot_repair kept the job alive: not compared with fault_free, longest pause 1.2 s.");
}

TEST(HeadlineTest, ASmallerJobSaysHowSmall) {
  Made made;
  made.add("shrink", 22).each([](reports::Run& run) {
    run.shrinks.resize(1);
    run.shrinks[0].ranks = 7;
    run.shrinks[0].missing = {3};
  });
  EXPECT_EQ(made.line(), "shrink went on with 7 of 8 ranks: +22 %.");
}

TEST(HeadlineTest, ASweepSaysTheBandwidthOfTheLargestCall) {
  Made made;
  made.add("balance", 30);
  for (reports::Run& run : made.result.runs) {
    for (const std::int64_t size : {4 << 20, 1 << 20}) {
      CollectiveRow row;
      row.operation = "all_reduce";
      row.size_bytes = size;
      row.dtype = "f32";
      row.n = 5;
      row.p50_ms = (run.faulted ? 1 / 0.75 : 1) * static_cast<double>(size);
      run.collectives.push_back(row);
    }
  }
  EXPECT_EQ(made.line(),
            "balance finished all calls: 75 % of the fault-free bandwidth (all_reduce of 4MiB).");
}

// What most calls kept says nothing of a fault that met few of them.
TEST(HeadlineTest, WhereAFaultMetSomeCallsTheWholeRunIsWhatCounts) {
  Made made;
  made.add("fail_stop", 180).restarts(600'000).add("balance", 31);
  for (reports::Run& run : made.result.runs) {
    CollectiveRow& row = run.collectives.emplace_back();
    row.operation = "all_reduce";
    row.size_bytes = 4 << 20;
    row.dtype = "f32";
    row.n = 20;
    row.struck = run.faulted ? 20 : 0;
    row.p50_ms = row.busbw = 1;
  }
  EXPECT_THAT(made.line(), HasSubstr("balance finished all calls: 100 % of the fault-free"));
  for (reports::Run& run : made.result.runs) {
    if (run.faulted) run.collectives.front().untouched = 1;
  }
  EXPECT_THAT(made.line(), HasSubstr("% of the fault-free")) << "the first call may be over before";
  for (reports::Run& run : made.result.runs) {
    if (!run.faulted) continue;
    run.collectives.front().n = run.collectives.front().struck = 1;
    run.collectives.front().untouched = 19;
  }
  EXPECT_EQ(made.line(),
            "balance finished all calls: +31 %; a stock library (fail_stop) had to be restarted (3 "
            "times): +180 %, and 10 min per fault with its usual watchdog.");
  EXPECT_THAT(bandwidthTable(made.result), HasSubstr("100 %*\n* of the calls that met a fault"));
}

TEST(BandwidthTableTest, HasALinePerCallAndAColumnPerStrategy) {
  Made made(2);
  made.add("balance", 30);
  EXPECT_EQ(bandwidthTable(made.result), "");
  std::ranges::reverse(made.result.runs);  // as the seed may have it
  for (reports::Run& run : made.result.runs) {
    CollectiveRow row;
    row.operation = "all_reduce";
    row.size_bytes = 1 << 20;
    row.dtype = "f32";
    row.p50_ms = run.faulted ? 4 : 3;
    row.busbw = run.faulted ? 0.075 : 0.1;
    run.collectives.push_back(row);
  }
  const std::string table = bandwidthTable(made.result);
  EXPECT_THAT(table, HasSubstr("fault_free         balance\n"));
  EXPECT_THAT(table, HasSubstr("all_reduce 1MiB f32"));
  EXPECT_THAT(table, HasSubstr("0.1000    0.0750  75 %\n"));
  EXPECT_THAT(terminalSummary(made.result), HasSubstr(table));
  const std::string all = collectivesText(made.result);
  EXPECT_LT(all.find("fault_free, block 1"), all.find("balance, block 1")) << all;
  EXPECT_LT(all.find("balance, block 1"), all.find("fault_free, block 2")) << all;
}

TEST(HeadlineTest, AServerSaysWhatBecameOfRequests) {
  Made made;
  made.add("hot_repair", 8.2).pauses(4);
  for (reports::Run& run : made.result.runs) run.requests.resize(1);
  RateRow& rate = made.result.summary.back().rates.emplace_back();
  rate.requests = 1200;
  EXPECT_EQ(made.line(),
            "hot_repair kept the server up: +8.2 % per request, longest pause 4 ms, all 1 200 "
            "requests in time.");
  rate.late = 5;
  rate.lost = 2;
  EXPECT_THAT(made.line(), HasSubstr(", 2 lost and 5 late of 1 200 requests."));
}

TEST(HeadlineTest, ModelledRowsSaySo) {
  Made made;
  made.add("hot_repair", 15);
  Summary& row = made.result.summary.emplace_back();
  row.strategy = "restart_at_scale";
  row.origin = Origin::kModelled;
  row.fault_cost = FaultCost{68 * 60, {}};
  EXPECT_EQ(made.line(),
            "hot_repair kept the job alive: +15 %; by a model, not measured, one fault costs: "
            "restart_at_scale 68 min of the job.");
}

TEST(HeadlineTest, WithoutFaultsNothingIsSaidAboutFaults) {
  Made made;
  made.result.summary[0].throughput = Quantity{12.44, "iterations/s"};
  EXPECT_EQ(made.line(),
            "No fault was injected, so this says nothing about faults: fault_free did 12 "
            "iterations/s.");
  made.add("armed", 0.3);
  made.each([](reports::Run& run) {
    run.faulted = false;
    run.arm = Arm::kArmed;
  });
  EXPECT_EQ(made.line(),
            "No fault was injected, so this says nothing about faults; against fault_free: armed "
            "+0.3 %.");
  made.ends(RunStatus::kFailed);
  EXPECT_EQ(made.line(), "armed, without any fault, did not finish: 3 of 3 runs failed.");
}

TEST(HeadlineTest, FailedExpectationsComeFirst) {
  Made made;
  made.add("hot_repair", 42).expects("wrong_elements == 0", true);
  made.expects("hot_repair.overhead_pct.median <= 30", false);
  made.result.verdict = Verdict::kFail;
  EXPECT_EQ(made.line(),
            "1 of 2 expectations does not hold (hot_repair.overhead_pct.median <= 30); hot_repair "
            "kept the job alive: +42 %.");
}

TEST(HeadlineTest, WrongResultsComeBeforeEverything) {
  Made made;
  made.add("hot_repair", 1);
  made.result.runs.back().wrong_elements = 12;
  made.result.verdict = Verdict::kFail;
  made.expects("wrong_elements == 0", false);
  EXPECT_THAT(made.line(), StartsWith("WRONG RESULTS by hot_repair (12 of 3 000 elements); "));
  made.result.interrupted = true;
  EXPECT_THAT(made.line(), AllOf(StartsWith("WRONG RESULTS"), HasSubstr("Interrupted")));
}

TEST(HeadlineTest, OtherDigestsAreAFailureWithoutAnExpectation) {
  Made made;
  made.add("hot_repair", 1);
  made.result.verdict = Verdict::kFail;
  made.result.reason = "hot_repair, block 1: the results differ from those of fault_free.";
  EXPECT_THAT(made.line(), StartsWith("Failed: hot_repair, block 1: the results differ"));
}

TEST(HeadlineTest, AnInvalidResultTellsNoNumber) {
  Made made;
  made.add("hot_repair", 15).pauses(5);
  made.result.verdict = Verdict::kInvalid;
  made.result.reason = "hot_repair, block 2: port_down left no evidence: nothing.";
  made.result.runs.back().status = RunStatus::kInvalid;
  EXPECT_EQ(made.line(),
            "Invalid, these numbers prove nothing: hot_repair, block 2: port_down left no "
            "evidence: nothing.");
  Made noisy;
  noisy.add("hot_repair", 15);
  noisy.result.verdict = Verdict::kInvalid;
  noisy.result.reason = "This result is void: too noisy.";
  noisy.result.drift.emplace().void_because = "too noisy";
  EXPECT_EQ(noisy.line(), "Invalid, these numbers prove nothing: This result is void: too noisy.");
}

TEST(HeadlineTest, AVoidExpectationAloneDecidesNothing) {
  Made made;
  made.add("hot_repair", 15).expects("wrong_elements == 0", true);
  made.expects("hot_repair.failover_pause_ms.p99 <= 20", false, true);
  made.result.verdict = Verdict::kInvalid;
  EXPECT_EQ(made.line(),
            "Not decided, 1 of 2 expectations cannot be judged; hot_repair kept the job alive: +15 "
            "%.");
}

TEST(HeadlineTest, PartsAndNothingSaySo) {
  Made made;
  made.result.interrupted = true;
  made.result.verdict = Verdict::kError;
  EXPECT_EQ(made.line(),
            "Interrupted after 3 runs: a part of the experiment, which decides nothing.");
  EXPECT_EQ(headline({}), "Nothing was measured: no reason was recorded, see log.txt.");
  Made broken;
  broken.result.verdict = Verdict::kError;
  broken.result.reason = "create a namespace: Operation not permitted";
  EXPECT_EQ(broken.line(),
            "The experiment could not be finished: create a namespace: Operation not permitted.");
}

TEST(HeadlineTest, HostileNamesStayOnOneLineOfText) {
  const std::string line = headline(testing::hostileResult());
  for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
}

TEST(HeadlineTest, NumbersHaveAsManyDigitsAsOneRemembers) {
  EXPECT_EQ(shortTime(0), "0 ms");
  EXPECT_EQ(shortTime(0.01), "less than 0.1 ms");
  EXPECT_EQ(shortTime(5.04), "5 ms");
  EXPECT_EQ(shortTime(33.4), "33 ms");
  EXPECT_EQ(shortTime(999.8), "1 s");
  EXPECT_EQ(shortTime(1649), "1.6 s");
  EXPECT_EQ(shortTime(600'500), "10 min");
  EXPECT_EQ(shortTime(3 * 3.6e6), "3 h");
  EXPECT_EQ(shortOverhead(0), "no slower");
  EXPECT_EQ(shortOverhead(0.12), "+0.1 %");
  EXPECT_EQ(shortOverhead(9.96), "+10 %");
}

}  // namespace
}  // namespace faultline::reports
