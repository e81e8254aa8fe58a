// What a run is estimated to take, beside what it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/netns/run/run_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/victim.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;
using test::Victim;

const std::string kEstimatedProgram = std::string(FAULTLINE_BINARY_DIR) + "/faultline";

/// What a process and all that it has started take now.
struct Taken {
  std::int64_t processes = 0, threads = 0, files = 0, most = 0;
  double memory = 0;
};

std::int64_t entries(const fs::path& folder) {
  std::error_code error;
  std::int64_t count = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

void add(const std::string& pid, Taken& taken) {
  const fs::path folder = fs::path("/proc") / pid;
  std::ifstream rollup(folder / "smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    std::istringstream words(line);
    std::string name;
    double kib = 0;
    if (words >> name >> kib && name == "Pss:") taken.memory += kib * 1024;
  }
  const std::int64_t files = entries(folder / "fd");
  ++taken.processes;
  taken.files += files;
  taken.most = std::max(taken.most, files);
  std::error_code error;
  for (fs::directory_iterator it(folder / "task", error), end; !error && it != end;
       it.increment(error)) {
    ++taken.threads;
    std::ifstream children(it->path() / "children");
    for (std::string child; children >> child;) add(child, taken);
  }
}

class EstimateTest : public RunTest {
 protected:
  nlohmann::json estimateOf(const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"run", file, "--dry-run", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const testing::Ran ran = testing::runFaultline(arguments, folder_.path());
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at(0).at("estimate");
  }
};

TEST_F(EstimateTest, OfASmallJobIsNearWhatItTakes) {
  const std::string file = folder_.write("scenario.yaml", scenarioText("[fault_free]", "[]"));
  const std::vector<std::string> larger{"--set", "cluster.ranks_per_node=2",
                                        "--set", "workload.iterations=2000",
                                        "--set", "workload.gradient.size=8MiB"};
  const nlohmann::json estimate = estimateOf(file, larger);
  std::vector<std::string> arguments{kEstimatedProgram, "run", file, "--out", out()};
  arguments.insert(arguments.end(), larger.begin(), larger.end());
  Victim victim(arguments, Victim::Listen::kStderr);
  ASSERT_TRUE(victim.awaitOutput("[1/1]", 20s));
  Taken most;
  const TimePoint end = now() + 2s;
  ASSERT_TRUE(test::pollUntil(20s, [&] {
    Taken taken;
    add(std::to_string(victim.pid()), taken);
    most.processes = std::max(most.processes, taken.processes);
    most.threads = std::max(most.threads, taken.threads);
    most.files = std::max(most.files, taken.files);
    most.most = std::max(most.most, taken.most);
    most.memory = std::max(most.memory, taken.memory);
    return now() > end && most.processes == 1 + 3 + 6;
  })) << most.processes;
  EXPECT_EQ(estimate.at("processes"), most.processes);
  const auto near = [](double estimated, double taken, const char* what) {
    EXPECT_GE(estimated, 0.8 * taken) << what;
    EXPECT_LE(estimated, 3 * taken) << what;
  };
  near(estimate.at("threads"), static_cast<double>(most.threads), "threads");
  near(estimate.at("descriptors"), static_cast<double>(most.files), "descriptors");
  near(estimate.at("descriptors_of_one_process"), static_cast<double>(most.most), "of one process");
  near(estimate.at("memory_bytes"), most.memory, "memory");
}

}  // namespace
}  // namespace faultline::run
