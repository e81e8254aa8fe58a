#include "harness/baseline/strategy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::baseline {
namespace {

TEST(StrategyTableTest, EveryStrategyIsDocumentedAndCanCorrupt) {
  for (const StrategySpec& strategy : strategies()) {
    EXPECT_EQ(findStrategy(strategy.name), &strategy) << "the name is not unique";
    EXPECT_FALSE(strategy.summary.empty());
    EXPECT_FALSE(strategy.measures.empty());
    std::map<std::string, std::string> needed;  // there is no usual file
    if (strategy.written) needed[std::string(kSchedule)] = "mine.xml";
    const auto options = Parameters::parse(strategy.name, strategy.options, needed);
    ASSERT_TRUE(options.ok()) << options.status().message();
    // Nobody can reach into programs that are not ours.
    // What is computed has no elements.
    const bool ours = strategy.workload != "command" && !strategy.modelled();
    EXPECT_EQ(options->has(kCorruptOneElement), ours);
    if (strategy.options.empty()) continue;
    EXPECT_FALSE(ours && options->get<bool>(kCorruptOneElement));
    for (const ParameterSpec& spec : strategy.options) {
      EXPECT_THAT(describeStrategy(strategy), ::testing::HasSubstr(std::string(spec.name)));
    }
  }
  EXPECT_EQ(findStrategy("prayer"), nullptr);
  for (const StrategySpec& strategy : strategies()) {
    if (strategy.written) continue;
    EXPECT_THAT(describeStrategy(strategy), ::testing::Not(::testing::HasSubstr("required")));
  }
}

TEST(StrategyTableTest, OnlyBaselinesAreSparedTheFault) {
  EXPECT_FALSE(findStrategy("fault_free")->meetsFaults);
  EXPECT_FALSE(findStrategy("armed")->meetsFaults);
  EXPECT_TRUE(findStrategy("fail_stop")->meetsFaults);
  EXPECT_TRUE(findStrategy("hot_repair")->meetsFaults);
  EXPECT_TRUE(findStrategy("balance")->meetsFaults);
}

TEST(StrategyTableTest, PlannedOnesNameAnAlgorithmOrAny) {
  for (const StrategySpec& strategy : strategies()) {
    if (!strategy.planned() || strategy.plannedBy == kAnyAlgorithm) continue;
    const bool known = std::ranges::any_of(
        schedule::algorithms(),
        [&](const schedule::Algorithm& algorithm) { return algorithm.name == strategy.plannedBy; });
    EXPECT_TRUE(known) << strategy.plannedBy;
  }
  EXPECT_FALSE(findStrategy("balance")->planned());
  EXPECT_EQ(findStrategy("optcc")->plannedBy, "optcc");
  EXPECT_EQ(findStrategy("optcc_server")->plannedBy, "optcc_server");
  EXPECT_EQ(findStrategy("auto")->plannedBy, kAnyAlgorithm);
}

TEST(StrategyTableTest, PropertiesOfARowGoTogether) {
  int references = 0;
  for (const StrategySpec& strategy : strategies()) {
    SCOPED_TRACE(strategy.name);
    references += strategy.reference ? 1 : 0;
    EXPECT_EQ(strategy.reference, strategy.name == kReferenceRow);
    EXPECT_FALSE(strategy.modelled() && (strategy.meetsFaults || strategy.resilient));
    EXPECT_TRUE(strategy.resilient || !strategy.sharesLoad);
    EXPECT_TRUE(strategy.sharesLoad || !strategy.planned());
    EXPECT_TRUE(strategy.losesRanks || !strategy.leavesRanksOut);
    // Options that a property promises are there, and the other way round.
    const auto has = [&](std::string_view option) {
      return std::ranges::count(strategy.options, option, &ParameterSpec::name) > 0;
    };
    EXPECT_TRUE(strategy.hangOption.empty() || has(strategy.hangOption));
    EXPECT_EQ(strategy.restarts, has(kWatchdog));
    EXPECT_TRUE(!strategy.restarts || has(kCheckpointEvery));
    EXPECT_EQ(strategy.losesRanks, has(kPatience));
    EXPECT_EQ(strategy.setsUpNccl, has(kMode));
    EXPECT_EQ(strategy.written, has(kSchedule));
    EXPECT_FALSE(strategy.written && strategy.planned());
    EXPECT_TRUE(strategy.workload != "command" || strategy.suitsForeign);
  }
  EXPECT_EQ(references, 1);
}

TEST(StrategyTableTest, ListsOfNamesFollowFromProperties) {
  EXPECT_EQ(namesOf([](const StrategySpec& one) { return one.losesRanks; }),
            "shrink and exclude_rank");
  EXPECT_EQ(namesOf([](const StrategySpec& one) { return one.suitsForeign; }),
            "fault_free, armed, unprotected and nccl");
  EXPECT_EQ(namesOf([](const StrategySpec& one) { return one.restarts; }), "fail_stop");
  EXPECT_EQ(namesOf([](const StrategySpec&) { return false; }), "");
  EXPECT_EQ(usualStrategy(false).name, "hot_repair");
  EXPECT_EQ(usualStrategy(true).name, "unprotected");
}

TEST(StrategyTableTest, ArmedCarriesOutWhatItIsLike) {
  const StrategySpec& armed = *findStrategy("armed");
  const auto like = Parameters::parse("armed", armed.options, {{"like", "optcc"}});
  ASSERT_TRUE(like.ok());
  EXPECT_EQ(carriedOut(armed, *like).plannedBy, "optcc");
  const StrategySpec& balance = *findStrategy("balance");
  EXPECT_EQ(&carriedOut(balance, *Parameters::parse("balance", balance.options, {})), &balance);
}

/// Everybody else asks for the properties of a row.
TEST(StrategyNamesTest, NoStrategyIsToldByItsNameOutsideTheTable) {
  namespace fs = std::filesystem;
  // The reference row is part of a result's format: its name is there once for programs, once for
  // the page. cell_metrics.cc asserts that it is the table's.
  const auto isFormat = [](const std::string& code) {
    return code.find("kReferenceRow = ") != std::string::npos ||
           code.find("const kReference = ") != std::string::npos;
  };
  // Words of other things, too: algorithms of AllReduce, a mode of NCCL and its name in
  // `environment`, an arm of runs, a field of
  // what ranks are told.
  std::set<std::string_view> words{"shrink", "nccl", "armed", "planned"};
  for (const StrategySpec& strategy : strategies()) words.insert(strategy.plannedBy);
  int files = 0;
  int names = 0;
  for (const char* room : {"harness", "injector", "reports", "resilient_ccl/comm", "wire"}) {
    for (const auto& file :
         fs::recursive_directory_iterator(fs::path(FAULTLINE_SOURCE_DIR) / room)) {
      const fs::path& path = file.path();
      const bool script = path.extension() == ".js";
      if (path.extension() != ".cc" && path.extension() != ".h" && !script) continue;
      if (path.filename() == "strategy_table.cc") continue;
      ++files;
      std::ifstream text(path);
      for (std::string line; std::getline(text, line);) {
        const std::string code = line.substr(0, line.find("//"));
        for (const StrategySpec& strategy : strategies()) {
          if (words.contains(strategy.name)) continue;
          const char quote = script ? '\'' : '"';
          if (code.find(fmt::format("{0}{1}{0}", quote, strategy.name)) == std::string::npos) {
            continue;
          }
          ++names;
          EXPECT_TRUE(isFormat(code)) << path << ": " << line;
        }
      }
    }
  }
  EXPECT_GT(files, 400);
  EXPECT_EQ(names,
            3);  // kReferenceRow of the table's header and of results, kReference of the page
}

}  // namespace
}  // namespace faultline::baseline
