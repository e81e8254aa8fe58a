#include "harness/history/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/analysis/compared_metrics.h"
#include "support/sample_result.h"

namespace faultline::history {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    std::string path = (fs::temp_directory_path() / "faultline-history-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
    path_ = directory_ + "/results.db";
  }
  ~StoreTest() override { fs::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(StoreTest, KeepsWhatIsComparedFromOneProgramToTheNext) {
  const auto result = testing::sampleResult();
  {
    auto store = Store::open(path_);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(*store->add(result));
  }
  const auto results = Store::openExisting(path_)->read();
  ASSERT_TRUE(results.ok()) << results.status().message();
  ASSERT_EQ(results->size(), 1u);
  const StoredResult& stored = results->front();
  EXPECT_EQ(stored.scenario, "quickstart");
  EXPECT_EQ(stored.started_at, result.started_at);
  EXPECT_EQ(stored.cpu, result.environment.cpu);
  EXPECT_EQ(stored.cores, 8);
  EXPECT_EQ(stored.verdict, "pass");
  std::size_t metrics = 0;
  for (const std::string& strategy : run::measuredStrategies(result)) {
    for (const run::ComparedMetric& metric : run::comparedMetrics()) {
      const auto values = metric.values(result, strategy).values;
      if (values.empty()) continue;
      ++metrics;
      const StoredMetric& kept = stored.metrics.at({strategy, metric.name});
      EXPECT_THAT(kept.values, ElementsAreArray(values)) << strategy << " " << metric.name;
      EXPECT_EQ(kept.unit, run::unitOf(metric, result));
    }
  }
  EXPECT_EQ(stored.metrics.size(), metrics);
  EXPECT_GT(metrics, 10u);
}

TEST_F(StoreTest, KeepsWhatEqualRunsDifferedByAlsoWithoutARowForNoise) {
  auto result = testing::sampleResult();
  result.noise.reset();
  result.drift.emplace();
  result.drift->spread_pct = 1.5;
  auto store = Store::open(path_);
  ASSERT_TRUE(*store->add(result));
  EXPECT_EQ(store->read()->front().median_band_pct, 1.5);
}

TEST_F(StoreTest, TheSameResultTwiceIsKeptOnce) {
  auto store = Store::open(path_);
  auto result = testing::sampleResult();
  EXPECT_TRUE(*store->add(result));
  EXPECT_FALSE(*store->add(result));
  result.started_at = "2026-05-03T09:30:00Z";
  EXPECT_TRUE(*store->add(result));
  const auto results = *store->read();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].started_at, result.started_at) << "the oldest first";
  EXPECT_EQ(results[0].metrics.begin()->second.values.size(),
            results[1].metrics.begin()->second.values.size());
}

TEST_F(StoreTest, HostileNamesAreOnlyText) {
  auto store = Store::open(path_);
  const auto result = testing::hostileResult();
  ASSERT_TRUE(store->add(result).ok());
  const auto results = *store->read();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].scenario, reports::scenarioName(result));
}

TEST_F(StoreTest, WhatIsNoHistoryIsRefusedAndLeftAsItIs) {
  EXPECT_EQ(Store::openExisting(path_).status().code(), Code::kNotFound);
  EXPECT_FALSE(fs::exists(path_)) << "was made";
  const std::string text =
      "not a database, but longer than a header of a hundred bytes: " + std::string(200, 'x');
  std::ofstream(path_) << text;
  EXPECT_EQ(Store::open(path_).status().code(), Code::kInvalidArgument);
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  EXPECT_EQ(Store::open(directory_ + "/no/such/folder.db").status().code(), Code::kIo);
}

TEST_F(StoreTest, ALinkToNothingMakesNoFileElsewhere) {
  const std::string elsewhere = directory_ + "/elsewhere.db";
  fs::create_symlink(elsewhere, path_);
  const Status status = Store::open(path_).status();
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("symbolic link"));
  EXPECT_FALSE(fs::exists(elsewhere));
  ASSERT_TRUE(Store::open(elsewhere).ok());
  EXPECT_TRUE(Store::open(path_).ok()) << "what it leads to is a history";
}

TEST_F(StoreTest, ADatabaseOfSomethingElseIsRefused) {
  // A file of SQLite with a table, but without our mark.
  ASSERT_TRUE(Store::open(path_).ok());
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  constexpr int kApplicationIdOffset = 68;  // https://www.sqlite.org/fileformat.html, section 1.3
  file.seekp(kApplicationIdOffset);
  file.write("abcd", 4);
  file.close();
  const Status status = Store::open(path_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("something else"));
}

}  // namespace
}  // namespace faultline::history
