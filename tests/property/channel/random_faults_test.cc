#include <gtest/gtest.h>

#include <cstdio>

#include "tests/property/channel/seeds.h"
#include "tests/support/arrivals_play.h"

// Random sizes, posting times, faults, pauses, losses and repetitions from a seed. Whatever
// happens, with a rail that lives in the end every byte arrives exactly once, and memory that was
// given back stays untouched; play() says what else is judged. FAULTLINE_SEED=n runs one seed,
// FAULTLINE_SEEDS=n that many.

namespace faultline::test {
namespace {

using channel::Cause;
using channel::DeadDirection;
using Phase = channel::Link::Phase;

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

TEST(ChannelProperty, NoSeedLosesOrRepeatsAByte) {
  const Seeds seeds = seedsToPlay();
  Coverage coverage = playSeeds(seeds, randomScript);
  if (HasFailure()) return;
  print(coverage, seeds.count());
  if (seeds.count() == 1) return;
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
  EXPECT_GT(coverage.counters.chunksResent, seeds.count() / 4);
  EXPECT_GT(coverage.counters.suspicions, seeds.count() / 8);
  EXPECT_GT(coverage.counters.chunksCopied, seeds.count() / 8);
}

TEST(ArrivalsProperty, OnlyInterruptionsOfAPathAreSeenInItsNumbers) {
  constexpr std::uint64_t kPlays = 5000;
  for (std::uint64_t seed = 1; seed <= kPlays; ++seed) {
    for (const std::string& problem : playArrivals(seed))
      FAIL() << "seed " << seed << ": " << problem;
  }
}

}  // namespace
}  // namespace faultline::test
