#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/witness_world.h"

// Where a rail is broken, as three to five processes find out by asking each other, in 2,000
// networks of which a referee knows the truth. FAULTLINE_SEED=n plays one.

namespace faultline::test {
namespace {

using channel::Reach;
using channel::Where;

TEST(WitnessProperty, NobodyIsBlamedWronglyAndWhatCanBeKnownIsFound) {
  const char* const only = std::getenv("FAULTLINE_SEED");
  const std::uint64_t first = only == nullptr ? 1 : std::strtoull(only, nullptr, 10);
  const std::uint64_t last = only == nullptr ? 2000 : first;
  WitnessOutcome sum;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const WitnessOutcome outcome = playWitnesses(seed);
    for (const auto& problem : outcome.problems) {
      FAIL() << "seed " << seed << " (FAULTLINE_SEED repeats it): " << problem;
    }
    sum += outcome;
  }
  for (const auto& [place, count] : sum.places) {
    std::printf("  %-10s %9d\n", std::string(channel::whereName(place)).c_str(),
                static_cast<int>(count));
  }
  if (only != nullptr) return;
  for (const Where place : {Where::kUnknown, Where::kLocal, Where::kRemote, Where::kBetween}) {
    EXPECT_GT(sum.places[place], 0u) << channel::whereName(place);
  }
  for (const Reach reach : {Reach::kUnknown, Reach::kAnswers, Reach::kSilent}) {
    EXPECT_GT(sum.sought[reach], 0u) << static_cast<int>(reach);
  }
}

}  // namespace
}  // namespace faultline::test
