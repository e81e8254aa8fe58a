#include "harness/analysis/strikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "harness/analysis/speed_bound.h"

namespace faultline::run {
namespace {

using reports::AppliedFault;
using reports::Run;
using reports::StrikeDifference;

/// A strike in the words in which the scenario asks for it: the same in every run.
struct StrikeKey {
  std::string kind;
  std::string target;
  std::string trigger;
  int number = 0;  ///< of those that are equal in all of this
  auto operator<=>(const StrikeKey&) const = default;
};

std::string inWords(const StrikeKey& key) {
  std::string text = key.kind;
  if (!key.target.empty()) text += fmt::format(" ({})", key.target);
  if (!key.trigger.empty()) text += ", " + key.trigger;
  return text;
}

/// One strike as one run had it.
struct Had {
  const Run* run;
  const AppliedFault* fault;

  /// The time of a fault that is there before the start counts from the start on.
  std::optional<double> lengthMs() const {
    if (!fault->end_ms) return std::nullopt;
    return *fault->end_ms - std::max(0.0, fault->start_ms);
  }
  /// It was not taken back because its time was over, but because the run was.
  bool endedWithTheRun() const {
    if (!fault->asked.ms || !fault->end_ms) return true;
    return *fault->end_ms >= run->duration_ms && *lengthMs() < *fault->asked.ms;
  }
};

using Strikes = std::vector<std::pair<StrikeKey, std::vector<Had>>>;

/// In the order in which they first appear.
Strikes strikesOf(const std::vector<const Run*>& runs) {
  Strikes strikes;
  for (const Run* const run : runs) {
    std::map<std::tuple<std::string, std::string, std::string>, int> seen;
    for (const AppliedFault& fault : run->faults) {
      StrikeKey key{fault.kind, fault.target.text, fault.trigger};
      key.number = seen[{key.kind, key.target, key.trigger}]++;
      auto place = std::ranges::find(strikes, key, &Strikes::value_type::first);
      if (place == strikes.end()) place = strikes.insert(place, {key, {}});
      place->second.push_back({run, &fault});
    }
  }
  return strikes;
}

/// The strategies and what each had: "3 with balance, 2 with hot_repair".
template <typename Value>
std::string listed(const std::vector<Had>& all, Value value, std::string_view unit) {
  std::string text;
  for (const Had& had : all) {
    const auto number = value(had);
    if (!number) continue;
    text += fmt::format("{}{:.6g}{} with {}", text.empty() ? "" : ", ",
                        static_cast<double>(*number), unit, had.run->strategy);
  }
  return text;
}

/// The most by which two of the values differ; 0 with fewer than two.
template <typename Value>
double spreadOf(const std::vector<Had>& all, Value value) {
  std::optional<double> least;
  std::optional<double> most;
  for (const Had& had : all) {
    const auto number = value(had);
    if (!number) continue;
    least = std::min(least.value_or(*number), static_cast<double>(*number));
    most = std::max(most.value_or(*number), static_cast<double>(*number));
  }
  return least ? *most - *least : 0;
}

class Block {
 public:
  Block(int number, std::vector<const Run*> runs, std::vector<StrikeDifference>& differences)
      : number_(number), runs_(std::move(runs)), differences_(differences) {}

  void compare() {
    for (const auto& [key, all] : strikesOf(runs_)) {
      key_ = inWords(key);
      compareNumber(all);
      compareLosses(all);
      compareMoments(all);
      compareLengths(all);
    }
  }

 private:
  void add(const char* what, bool voids, std::string detail) {
    differences_.push_back({number_, key_, what, std::move(detail), voids});
  }

  void compareNumber(const std::vector<Had>& all) {
    std::string without;
    for (const Run* const run : runs_) {
      if (std::ranges::find(all, run, &Had::run) != all.end()) continue;
      without += (without.empty() ? "" : ", ") + run->strategy;
    }
    if (!without.empty()) add("strikes", true, "it did not strike with " + without);
  }

  void compareLosses(const std::vector<Had>& all) {
    std::optional<std::int64_t> asked;
    std::set<std::int64_t> numbers;
    const auto losses = [](const Had& had) {
      return had.endedWithTheRun() ? std::nullopt : had.fault->losses;
    };
    for (const Had& had : all) {
      if (!losses(had)) continue;
      numbers.insert(*losses(had));
      asked = had.fault->asked.losses;
    }
    const bool as_asked = !asked || (numbers.size() == 1 && numbers.contains(*asked));
    if (numbers.size() <= 1 && as_asked) return;
    add("losses", true,
        fmt::format("the number of losses was {}{}", listed(all, losses, ""),
                    asked ? fmt::format("; it was to be {}", *asked) : ""));
  }

  void compareMoments(const std::vector<Had>& all) {
    const auto start = [](const Had& had) -> std::optional<double> {
      if (!had.fault->asked.start_ms) return std::nullopt;
      return had.fault->start_ms;
    };
    if (spreadOf(all, start) > kStartToleranceMs) {
      add("start", false, fmt::format("it came at {}", listed(all, start, " ms")));
    }
    const auto progress = [](const Had& had) -> std::optional<double> {
      return had.fault->hit ? had.fault->hit->progress_pct : std::nullopt;
    };
    if (spreadOf(all, progress) > kProgressTolerancePoints) {
      add("progress", false,
          fmt::format("its iteration was done to {}", listed(all, progress, " %")));
    }
    const auto iteration = [](const Had& had) -> std::optional<int> {
      const bool asked = had.fault->hit && had.fault->asked.iteration;
      return asked ? had.fault->hit->iteration : std::nullopt;
    };
    if (spreadOf(all, iteration) > 0) {
      add("iteration", false, fmt::format("it came in iteration {}", listed(all, iteration, "")));
    }
  }

  void compareLengths(const std::vector<Had>& all) {
    double tolerance = kLengthToleranceMs;
    const auto length = [](const Had& had) {
      return had.endedWithTheRun() ? std::nullopt : had.lengthMs();
    };
    for (const Had& had : all) {
      if (had.fault->asked.ms) {
        tolerance = std::max(tolerance, *had.fault->asked.ms * kLengthToleranceShare);
      }
    }
    if (spreadOf(all, length) > tolerance) {
      add("length", false, fmt::format("it lasted {}", listed(all, length, " ms")));
    }
  }

  int number_;
  std::vector<const Run*> runs_;
  std::vector<StrikeDifference>& differences_;
  std::string key_;
};

}  // namespace

std::vector<StrikeDifference> compareStrikes(std::span<const Run> runs) {
  std::map<int, std::vector<const Run*>> blocks;
  for (const Run& run : runs) {
    if (run.faulted && completed(run)) blocks[run.block].push_back(&run);
  }
  std::vector<StrikeDifference> differences;
  for (auto& [number, of_block] : blocks) Block(number, std::move(of_block), differences).compare();
  return differences;
}

void markVoidBlocks(std::span<const StrikeDifference> differences, std::span<Run> runs) {
  for (const StrikeDifference& difference : differences) {
    if (!difference.voids) continue;
    for (Run& run : runs) {
      if (run.block != difference.block || !run.void_because.empty()) continue;
      run.void_because =
          fmt::format("the strategies of this block did not have the same fault: {}: {}",
                      difference.fault, difference.detail);
    }
  }
}

std::vector<std::string> inWords(std::span<const StrikeDifference> differences) {
  std::vector<std::string> sentences;
  for (const StrikeDifference& one : differences) {
    sentences.push_back(fmt::format("block {} {}: {}: {}", one.block + 1,
                                    one.voids ? "is void and left out of all comparisons, as its "
                                                "strategies did not have the same fault"
                                              : "had strikes that differ, and counts",
                                    one.fault, one.detail));
  }
  return sentences;
}

}  // namespace faultline::run
