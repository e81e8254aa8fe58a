#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/support/arrivals_play.h"
#include "tests/support/channel_player.h"

// Random sizes, posting times, faults, pauses, losses and repetitions from a seed. Whatever
// happens, with a rail that lives in the end every byte arrives exactly once, and memory that was
// given back stays untouched; play() says what else is judged. FAULTLINE_SEED=n runs one seed,
// FAULTLINE_SEEDS=n that many.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::DeadDirection;
using Phase = channel::Link::Phase;

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Every change of a rail that an honest peer can cause; `protocol` is for liars, of whom
/// unit/channel/hostile_peer_test tells.
constexpr Coverage::Change kChanges[] = {
    {Phase::kDown, Phase::kOpening, Input::kTick},
    {Phase::kDown, Phase::kUp, Input::kOpened},
    {Phase::kDown, Phase::kDown, Input::kDatagram},  // the peer had and lost the next epoch
    {Phase::kOpening, Phase::kUp, Input::kOpened},
    {Phase::kOpening, Phase::kDown, Input::kOpenFailed},
    {Phase::kOpening, Phase::kDown, Input::kPort},
    {Phase::kOpening, Phase::kDown, Input::kReset},
    {Phase::kOpening, Phase::kDown, Input::kDatagram},
    {Phase::kOpening, Phase::kDown, Input::kStart},
    {Phase::kUp, Phase::kFencing, Input::kPort},
    {Phase::kUp, Phase::kFencing, Input::kReset},
    {Phase::kUp, Phase::kFencing, Input::kHello},
    {Phase::kUp, Phase::kFencing, Input::kDatagram},
    {Phase::kUp, Phase::kFencing, Input::kTick},
    {Phase::kUp, Phase::kFencing, Input::kStall},
    {Phase::kFencing, Phase::kDown, Input::kFenced},
    {Phase::kFencing, Phase::kDown, Input::kDatagram},
};

constexpr Coverage::Verdict kVerdicts[] = {
    {Cause::kLocalNic, false, false}, {Cause::kRemoteNic, true, false},
    {Cause::kLocalNic, true, false},  // told of a dead path, and it was the own port
    {Cause::kRail, false, false},     {Cause::kRail, true, false},
    {Cause::kRail, false, true},      {Cause::kRail, true, true},
    {Cause::kPath, false, false},     {Cause::kPath, true, false},
};

void line(const std::string& what, std::uint64_t count) {
  std::printf("  %-40s %9llu\n", what.c_str(), static_cast<unsigned long long>(count));
}

void print(Coverage& coverage, std::uint64_t seeds) {
  std::printf("coverage of %llu seeds\n", static_cast<unsigned long long>(seeds));
  for (const Phase phase : {Phase::kDown, Phase::kOpening, Phase::kUp, Phase::kFencing}) {
    line(std::string(phaseName(phase)), coverage.entered[phase]);
  }
  for (const auto& [change, count] : coverage.changes) {
    line(fmt::format("{} -> {}: {}", phaseName(change.from), phaseName(change.to),
                     inputName(change.input)),
         count);
  }
  for (const auto& [verdict, count] : coverage.verdicts) {
    line(fmt::format("{}{}{}", channel::causeName(verdict.cause), verdict.told ? ", told" : "",
                     verdict.stalled ? ", stuck transport" : ""),
         count);
  }
  for (const auto& [direction, count] : coverage.directions) {
    line(fmt::format("path, lost: {}", channel::directionName(direction)), count);
  }
  line("gave up, as it had to", coverage.givenUp);
  line("rails missing at the beginning", coverage.missing);
  line("slow rails found", coverage.counters.degradations);
  line("cause found out later", coverage.explained);
  line("bytes that came over a failed rail, too", coverage.arrivedTwice);
}

/// The seed, what went wrong, and the shortest script in which something still does.
std::string explain(std::uint64_t seed, const Outcome& outcome) {
  std::string text = fmt::format("seed {} (FAULTLINE_SEED repeats it):\n", seed);
  for (const std::string& problem : outcome.problems) text += "  " + problem + "\n";
  Script shortest = shrink(randomScript(seed),
                           [](const Script& script) { return !play(script).problems.empty(); });
  shortest.options.trace = true;
  const Outcome again = play(shortest);
  text += "a minimal script that fails: " + shortest.toString();
  for (const std::string& problem : again.problems) text += "  " + problem + "\n";
  text += "what happened last:\n";
  for (const std::string& event : again.trace) text += "  " + event + "\n";
  return text;
}

TEST(ChannelProperty, NoSeedLosesOrRepeatsAByte) {
  const std::uint64_t only = fromEnvironment("FAULTLINE_SEED", 0);
  const std::uint64_t seeds = fromEnvironment("FAULTLINE_SEEDS", FAULTLINE_DEFAULT_SEEDS);
  const std::uint64_t last = only ? only : seeds;
  std::atomic<std::uint64_t> next = only ? only : 1;
  std::mutex mutex;
  Coverage coverage;
  std::map<std::uint64_t, Outcome> failed;
  const auto work = [&] {
    Coverage mine;
    for (std::uint64_t seed = next++; seed <= last; seed = next++) {
      Outcome outcome = play(randomScript(seed));
      mine += outcome.coverage;
      if (outcome.problems.empty()) continue;
      next = last + 1;  // the others end what they have begun
      const std::lock_guard lock(mutex);
      failed.emplace(seed, std::move(outcome));
    }
    const std::lock_guard lock(mutex);
    coverage += mine;
  };
  // Links share nothing: as many threads as there are cores.
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) workers.emplace_back(work);
  work();
  workers.clear();
  if (!failed.empty()) {
    FAIL() << explain(failed.begin()->first, failed.begin()->second);
  }
  print(coverage, only ? 1 : seeds);
  if (only) return;
  for (const auto& change : kChanges) {
    EXPECT_GT(coverage.changes[change], 0u)
        << phaseName(change.from) << " -> " << phaseName(change.to) << ": "
        << inputName(change.input);
  }
  EXPECT_EQ(coverage.changes.size(), std::size(kChanges)) << "one that is not in the list";
  for (const auto& verdict : kVerdicts) {
    EXPECT_GT(coverage.verdicts[verdict], 0u)
        << channel::causeName(verdict.cause) << verdict.told << verdict.stalled;
  }
  EXPECT_EQ(coverage.verdicts.size(), std::size(kVerdicts)) << "one that is not in the list";
  for (const auto direction :
       {DeadDirection::kOutgoing, DeadDirection::kIncoming, DeadDirection::kBoth}) {
    EXPECT_GT(coverage.directions[direction], 0u) << channel::directionName(direction);
  }
  EXPECT_GT(coverage.givenUp, 0u);
  EXPECT_GT(coverage.arrivedTwice, 0);
  EXPECT_GT(coverage.explained, 0);
  EXPECT_GT(coverage.missing, 0u);
  EXPECT_GT(coverage.counters.degradations, 0u);
  EXPECT_GT(coverage.counters.chunksResent, seeds / 4);
  EXPECT_GT(coverage.counters.suspicions, seeds / 8);
  EXPECT_GT(coverage.counters.chunksCopied, seeds / 8);
}

TEST(ArrivalsProperty, OnlyInterruptionsOfAPathAreSeenInItsNumbers) {
  constexpr std::uint64_t kSeeds = 5000;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const std::string& problem : playArrivals(seed))
      FAIL() << "seed " << seed << ": " << problem;
  }
}

}  // namespace
}  // namespace faultline::test
