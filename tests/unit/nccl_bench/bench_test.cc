#include "harness/nccl_bench/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "harness/nccl_bench/ports.h"

namespace faultline::nccl_bench {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A rank that is alone: what it gets is what it brings. Calls from `hangsFrom` on are never done,
/// until it has joined again; of the result of call `corrupts` one bit is wrong.
class LonelyDevice final : public Device {
 public:
  int hangsFrom = -1;
  int corrupts = -1;
  int calls = 0;
  int joins = 0;
  int aborts = 0;
  std::vector<std::vector<int>> shrunk;

  std::string libraryVersion() const override { return "9.8.7"; }
  std::string name() const override { return "device 0"; }
  std::string identity() const override { return "here"; }
  Result<std::string> newCommunicatorId() override { return std::string("id"); }
  Status join(const std::string& id, int rank, int ranks) override {
    EXPECT_EQ(id, "id");
    EXPECT_LT(rank, ranks);
    ++joins;
    if (joins > 1) hangsFrom = -1;
    return okStatus();
  }
  Status upload(workload::CollectiveBuffers& buffers) override {
    const auto source = buffers.source();
    input_.assign(source.begin(), source.end());
    return okStatus();
  }
  Status launch(const workload::CollectiveBuffers&) override {
    ++calls;
    return okStatus();
  }
  Result<bool> done() override { return hangsFrom < 0 || calls <= hangsFrom; }
  Status download(workload::CollectiveBuffers& buffers) override {
    std::ranges::copy(input_, buffers.target().data());
    if (calls == corrupts) buffers.corrupt(1);
    return okStatus();
  }
  Status abort() override {
    ++aborts;
    return okStatus();
  }
  Status shrink(const std::vector<int>& without) override {
    shrunk.push_back(without);
    hangsFrom = -1;
    return okStatus();
  }
  void giveUp() override { (void)abort(); }

 private:
  std::vector<std::byte> input_;
};

Options optionsFor(std::vector<Bytes> sizes) {
  Options options;
  options.sweep.sizes = std::move(sizes);
  options.warmups = 1;
  options.calls = 3;
  options.wait = 5ms;
  return options;
}

const Exchange kAlone = [](const std::string& mine) -> Result<std::vector<std::string>> {
  return std::vector{mine};
};

/// A file that is gone when the test is over.
class TemporaryFile {
 public:
  explicit TemporaryFile(const char* name)
      : path_(std::filesystem::temp_directory_path() /
              ("nccl_bench_" + std::to_string(::getpid()) + name)) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }
  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  std::filesystem::path path_;
};

TEST(Bench, PrintsALineForEachSize) {
  LonelyDevice device;
  Options options = optionsFor({8192, 65536});
  options.sweep.place = scenario::Place::kBoth;
  std::ostringstream out;
  const auto wrong = runBench(options, device, kAlone, out);
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_EQ(*wrong, 0);
  EXPECT_THAT(out.str(), HasSubstr("NCCL version 9.8.7\n"));
  EXPECT_THAT(out.str(), HasSubstr("        8192          2048     float     sum      -1 "));
  EXPECT_THAT(out.str(), HasSubstr("       65536         16384     float     sum      -1 "));
  EXPECT_THAT(out.str(), HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(out.str(), Not(HasSubstr("share GPUs")));
  // Per size and place one warm-up, three, and the one that is checked.
  EXPECT_EQ(device.calls, 2 * 2 * 5);
}

TEST(Bench, SeesOneWrongBit) {
  LonelyDevice device;
  device.corrupts = 5;  // the call that is checked
  std::ostringstream out;
  const auto wrong = runBench(optionsFor({8192}), device, kAlone, out);
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(*wrong, 1);
  EXPECT_THAT(out.str(), HasSubstr("# Out of bounds values : 1 FAILED"));
}

TEST(Bench, EachLooksAtEveryCallAndTellsIt) {
  const TemporaryFile progress("progress");
  LonelyDevice device;
  device.corrupts = 3;  // the second after the warm-up
  Options options = optionsFor({8192});
  options.each = true;
  options.progressFile = progress.path();
  std::ostringstream out;
  const auto wrong = runBench(options, device, kAlone, out);
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ(*wrong, 1);
  EXPECT_THAT(progress.lines(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(out.str(), HasSubstr("# call 2 8192 out-of-place time_us "));
  EXPECT_THAT(out.str(), HasSubstr("# all_reduce 8192 out-of-place: 3 calls, us: min "));
}

TEST(Bench, ACallThatIsNotDoneIsAnError) {
  LonelyDevice device;
  device.hangsFrom = 2;
  Options options = optionsFor({8192});
  options.wait = 110ms;
  std::ostringstream out;
  const auto wrong = runBench(options, device, kAlone, out);
  EXPECT_EQ(wrong.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(wrong.status().message(),
              HasSubstr("all_reduce of 8192 bytes: not done within 110ms"));
  // As the scenario of all NICs gone reads it.
  EXPECT_THAT(wrong.status().message(),
              ContainsRegex("\\((0\\.[1-9]|[1-9][0-9]*\\.[0-9]) s after the call began\\)$"));
  EXPECT_EQ(device.aborts, 0);
}

TEST(Bench, MakesItsCommunicatorAnewAndCallsAgain) {
  const TemporaryFile recovery("recovery");
  LonelyDevice device;
  device.hangsFrom = 2;
  Options options = optionsFor({8192});
  options.each = true;
  options.recovery = Recovery::kAbortReinit;
  options.recoveryFile = recovery.path();
  std::ostringstream out;
  const auto wrong = runBench(options, device, kAlone, out);
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_EQ(*wrong, 0);
  EXPECT_EQ(device.aborts, 1);
  EXPECT_EQ(device.joins, 2);
  EXPECT_EQ(device.calls, 1 + 3 + 1);  // one of them twice
  EXPECT_THAT(recovery.lines(), ElementsAre("failed", "rebuilt 1"));
  EXPECT_THAT(out.str(), HasSubstr("# communicator made anew: "));
}

TEST(Bench, RebuildsWhenOnlyAnotherRankHasFailed) {
  const TemporaryFile recovery("recovery");
  LonelyDevice device;
  Options options = optionsFor({8192});
  options.each = true;
  options.check = false;  // the other rank brings nothing
  options.recovery = Recovery::kAbortReinit;
  options.ranks = 2;
  options.recoveryFile = recovery.path();
  int told = 0;
  const Exchange exchange = [&](const std::string& mine) -> Result<std::vector<std::string>> {
    // The first outcome of a call that it is told: after id, names, identities and the start.
    if (++told == 5) return std::vector<std::string>{mine, "failed"};
    return std::vector{mine, mine};
  };
  std::ostringstream out;
  const auto wrong = runBench(options, device, exchange, out);
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_EQ(device.aborts, 1);
  EXPECT_THAT(recovery.lines(), ElementsAre("failed", "rebuilt 2"));
  EXPECT_THAT(out.str(), HasSubstr("# Ranks share GPUs: 2 ranks on 1"));
}

/// Four ranks, of which those of `lost` have a port that is down. All others say what this one
/// says.
Exchange fourRanks(const std::vector<int>& lost) {
  return [lost](const std::string& mine) -> Result<std::vector<std::string>> {
    std::vector<std::string> all(4, mine.empty() ? "id" : mine);
    if (mine != "lost" && mine != "whole") return all;
    for (int rank = 0; rank < 4; ++rank) {
      all[static_cast<std::size_t>(rank)] = std::ranges::count(lost, rank) > 0 ? "lost" : "whole";
    }
    return all;
  };
}

Options shrinkingRank(int rank, const TemporaryFile& recovery) {
  Options options = optionsFor({8192});
  options.each = true;
  options.check = false;  // the others bring nothing
  options.recovery = Recovery::kShrink;
  options.rank = rank;
  options.ranks = 4;
  options.recoveryFile = recovery.path();
  return options;
}

TEST(Bench, GoesOnWithoutTheRankBehindALostPort) {
  const TemporaryFile recovery("recovery");
  LonelyDevice device;
  device.hangsFrom = 2;
  std::ostringstream out;
  const auto wrong =
      runBench(shrinkingRank(0, recovery), device, fourRanks({1}), out, [] { return false; });
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_THAT(device.shrunk, ElementsAre(ElementsAre(1)));
  EXPECT_EQ(device.aborts, 0);
  EXPECT_EQ(device.joins, 1);
  EXPECT_EQ(device.calls, 1 + 3 + 1);  // one of them twice
  EXPECT_THAT(recovery.lines(), ElementsAre("failed", "rebuilt 3"));
  EXPECT_THAT(out.str(), HasSubstr("# communicator of 3 ranks: "));
}

TEST(Bench, WhoIsBehindALostPortLeaves) {
  const TemporaryFile recovery("recovery");
  LonelyDevice device;
  device.hangsFrom = 2;
  std::ostringstream out;
  const auto wrong =
      runBench(shrinkingRank(1, recovery), device, fourRanks({1}), out, [] { return true; });
  EXPECT_EQ(wrong.status().code(), Code::kAborted);
  EXPECT_TRUE(device.shrunk.empty());
  EXPECT_EQ(device.aborts, 1);
  EXPECT_THAT(recovery.lines(), ElementsAre("failed", "left"));
}

TEST(Bench, TheNextRankTellsWhenTheFirstHasLeft) {
  const TemporaryFile recovery("recovery");
  LonelyDevice device;
  device.hangsFrom = 2;
  std::ostringstream out;
  const auto wrong =
      runBench(shrinkingRank(1, recovery), device, fourRanks({0}), out, [] { return false; });
  ASSERT_TRUE(wrong.ok()) << wrong.status().message();
  EXPECT_THAT(out.str(), HasSubstr("# communicator of 3 ranks"));
  EXPECT_THAT(out.str(), HasSubstr("# Avg bus bandwidth"));
}

TEST(Bench, WithoutALostPortNobodyIsLeftOut) {
  for (const std::vector<int>& lost : {std::vector<int>{}, std::vector<int>{0, 1, 2, 3}}) {
    const TemporaryFile recovery("recovery");
    LonelyDevice device;
    device.hangsFrom = 2;
    std::ostringstream out;
    const auto wrong = runBench(shrinkingRank(0, recovery), device, fourRanks(lost), out,
                                [&] { return !lost.empty(); });
    EXPECT_EQ(wrong.status().code(), Code::kUnavailable);
    EXPECT_THAT(wrong.status().message(), HasSubstr("not done within 5ms"));
    EXPECT_TRUE(device.shrunk.empty());
  }
}

TEST(Ports, AnInterfaceThatIsDownOrNotThereIsLost) {
  const std::vector<std::string> here{"lo"};
  EXPECT_FALSE(anyPortDown(here));
  EXPECT_FALSE(anyPortDown({}));
  const std::vector<std::string> gone{"lo", "nosuchport"};
  EXPECT_TRUE(anyPortDown(gone));
  // In a network namespace of its own a thread has a loopback that is down.
  std::optional<bool> down;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) down = anyPortDown(here);
  }).join();
  if (!down) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_TRUE(*down);
}

TEST(Bench, TheTimeOfTheSlowestRankCounts) {
  LonelyDevice device;
  Options options = optionsFor({8192});
  options.each = true;
  options.check = false;
  options.ranks = 2;
  bool outcome = false;
  const Exchange exchange = [&](const std::string& mine) -> Result<std::vector<std::string>> {
    outcome = !mine.empty() && mine.find_first_not_of("0123456789.e-") == std::string::npos;
    return std::vector<std::string>{mine, outcome ? "12.5" : mine};
  };
  std::ostringstream out;
  ASSERT_TRUE(runBench(options, device, exchange, out).ok());
  EXPECT_THAT(out.str(), HasSubstr("3 calls, us: min 12500.0 p50 12500.0 max 12500.0"));
}

TEST(Bench, OtherRanksPrintNothing) {
  LonelyDevice device;
  Options options = optionsFor({8192});
  options.rank = 1;
  options.ranks = 2;
  options.check = false;
  const Exchange exchange = [](const std::string& mine) -> Result<std::vector<std::string>> {
    return std::vector<std::string>{mine.empty() ? "id" : mine, mine};
  };
  std::ostringstream out;
  EXPECT_TRUE(runBench(options, device, exchange, out).ok());
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace faultline::nccl_bench
