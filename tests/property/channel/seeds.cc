#include "tests/property/channel/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace faultline::test {
namespace {

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string explain(std::uint64_t seed, const Script& script, const Outcome& outcome) {
  std::string text = fmt::format("seed {} (FAULTLINE_SEED repeats it):\n", seed);
  for (const std::string& problem : outcome.problems) text += "  " + problem + "\n";
  Script shortest =
      shrink(script, [](const Script& shorter) { return !play(shorter).problems.empty(); });
  shortest.options.trace = true;
  const Outcome again = play(shortest);
  text += "a minimal script that fails: " + shortest.toString();
  for (const std::string& problem : again.problems) text += "  " + problem + "\n";
  text += "what happened last:\n";
  for (const std::string& event : again.trace) text += "  " + event + "\n";
  return text;
}

}  // namespace

Seeds seedsToPlay() {
  if (const std::uint64_t only = fromEnvironment("FAULTLINE_SEED", 0)) return {only, only};
  return {1, fromEnvironment("FAULTLINE_SEEDS", FAULTLINE_DEFAULT_SEEDS)};
}

Coverage playSeeds(Seeds seeds, const std::function<Script(std::uint64_t seed)>& scriptOf) {
  std::atomic<std::uint64_t> next = seeds.first;
  std::mutex mutex;
  Coverage coverage;
  std::map<std::uint64_t, Outcome> failed;
  const auto work = [&] {
    Coverage mine;
    for (std::uint64_t seed = next++; seed <= seeds.last; seed = next++) {
      Outcome outcome = play(scriptOf(seed));
      mine += outcome.coverage;
      if (outcome.problems.empty()) continue;
      next = seeds.last + 1;  // the others end what they have begun
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
    const auto& [seed, outcome] = *failed.begin();
    ADD_FAILURE() << explain(seed, scriptOf(seed), outcome);
  }
  return coverage;
}

}  // namespace faultline::test
