#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <ostream>

#include "planted_bugs.h"
#include "tests/support/arrivals_play.h"
#include "tests/support/channel_player.h"
#include "tests/support/witness_world.h"

// Whether the seeded world would notice: each bug of tests/planted/bugs.txt is planted, and one of
// the first seeds must find it. Without a bug the same library passes all of them.

namespace faultline::test {
namespace {

using planted::Bug;

constexpr std::uint64_t kSeeds = 500;
/// Of them those with which streams are closed, too: what only these find, the first ones do.
constexpr std::uint64_t kClosingSeeds = 100;

struct Tried : planted::NamedBug {
  friend void PrintTo(const Tried& tried, std::ostream* out) { *out << tried.name; }
};

std::vector<Tried> allBugs() {
  std::vector<Tried> bugs;
  for (const planted::NamedBug& bug : planted::kBugs) bugs.push_back({bug});
  return bugs;
}

/// What a child that may crash leaves behind.
struct Notes {
  std::atomic<std::uint64_t> seed = 0;  ///< being played
  char problem[200] = "crashed";
};

constexpr int kSurvived = 0;

[[noreturn]] void tryAll(Bug bug, Notes& notes) noexcept {
  const rlimit noCore{0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  // A loop without end is a crash; a machine that is busy makes none.
  const rlimit seconds{60, 60};
  ::setrlimit(RLIMIT_CPU, &seconds);
  const rlimit memory{2UL << 30, 2UL << 30};
  ::setrlimit(RLIMIT_AS, &memory);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(2);
  planted::chosen = bug;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    notes.seed = seed;
    const auto closing = [seed] {
      return seed <= kClosingSeeds ? play(closingScript(seed)).problems
                                   : std::vector<std::string>{};
    };
    for (const auto& problems : {playArrivals(seed), play(randomScript(seed)).problems, closing(),
                                 playWitnesses(seed).problems}) {
      if (problems.empty()) continue;
      std::snprintf(notes.problem, sizeof(notes.problem), "%s", problems[0].c_str());
      ::_exit(1);
    }
  }
  ::_exit(kSurvived);
}

/// The first seed that fails with this bug, tried in a child, because a bug may do anything to its
/// process; 0: none does. `problem` says how.
std::uint64_t killedBy(Bug bug, std::string& problem) {
  void* const memory =
      ::mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ADD_FAILURE() << "no memory to share";
    return 0;
  }
  auto* const notes = new (memory) Notes;
  const pid_t child = ::fork();
  if (child == 0) tryAll(bug, *notes);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const bool survived = WIFEXITED(status) && WEXITSTATUS(status) == kSurvived;
  const std::uint64_t seed = notes->seed;
  problem = notes->problem;
  ::munmap(memory, sizeof(Notes));
  return survived ? 0 : seed;
}

class MutantTest : public ::testing::TestWithParam<Tried> {};

TEST_P(MutantTest, IsFound) {
  std::string problem;
  const std::uint64_t seed = killedBy(GetParam().bug, problem);
  EXPECT_NE(seed, 0u) << kSeeds << " seeds do not see it";
  std::printf("%-28s seed %3d: %s\n", GetParam().name, static_cast<int>(seed), problem.c_str());
}

INSTANTIATE_TEST_SUITE_P(Planted, MutantTest, ::testing::ValuesIn(allBugs()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(ShrinkTest, AFailingSeedIsReducedToWhatMatters) {
  // It runs in this process: not one that writes where it must not.
  planted::chosen = Bug::kResendEverything;
  const auto fails = [](const Script& script) { return !play(script).problems.empty(); };
  std::uint64_t seed = 1;
  while (!fails(randomScript(seed))) ++seed;
  const Script whole = randomScript(seed);
  Script shortest = shrink(whole, fails);
  shortest.options.trace = true;
  const Outcome outcome = play(shortest);
  planted::chosen = Bug::kNone;
  SCOPED_TRACE(shortest.toString());
  // A message and a fault; sometimes a second message keeps the rail busy.
  EXPECT_LE(shortest.actions.size(), 3u);
  EXPECT_GT(whole.actions.size(), shortest.actions.size());
  EXPECT_FALSE(outcome.problems.empty());
  EXPECT_FALSE(outcome.trace.empty());
  for (std::size_t i = 0; i < shortest.actions.size(); ++i) {
    Script less = shortest;
    less.actions.erase(less.actions.begin() + static_cast<std::ptrdiff_t>(i));
    planted::chosen = Bug::kResendEverything;
    EXPECT_FALSE(fails(less)) << "action " << i << " can be left out";
    planted::chosen = Bug::kNone;
  }
  EXPECT_FALSE(fails(shortest)) << "the script blames what is not planted";
}

TEST(NoMutantTest, NothingIsFound) {
  std::string problem;
  const std::uint64_t seed = killedBy(Bug::kNone, problem);
  EXPECT_EQ(seed, 0u) << problem;
}

}  // namespace
}  // namespace faultline::test
