#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/sim_world.h"

namespace faultline::test {

/// One thing that is done to a simulated world.
struct Action {
  enum class Kind : std::uint8_t {
    kMessages,   ///< `count` of `bytes` from `end`; the receives are posted at `length`
    kNote,       ///< from `end`
    kPortDown,   ///< of `end`, for `length`
    kBlackHole,  ///< from end 0, end 1, both, for `length`
    kReset,
    kManagementDown,  ///< for `length`
    kPause,           ///< of the process `end`, for `length`
    kSlow,            ///< to `rate` bytes per second; fast again after `length`, unless that is 0
    kKill,            ///< the process `end`
  };
  /// Of a fault: until all messages are there.
  static constexpr Duration kForGood = Duration::max();

  Kind kind{};
  Duration at{};
  /// Waits, from `at` on, until the rail gets into this state at either end, and acts a little
  /// later: faults hit every step of a repair.
  std::optional<channel::Link::Phase> phase{};
  Duration after{};
  int end = 0;
  int rail = 0;
  Duration length{};
  Bytes bytes = 0;
  int count = 1;
  bool fromEnd0 = true, fromEnd1 = true;
  double rate = 0;

  bool breaksRail() const;
  std::string toString() const;
};

/// Everything that happens in one run, in a form that can be made shorter.
struct Script {
  SimOptions options;
  std::vector<Action> actions;

  /// Nothing can save the job: a process is killed, or all rails are dead for good.
  bool fatal() const;
  std::string toString() const;
};

/// The script of a seed: sizes, times, faults, pauses, losses.
Script randomScript(std::uint64_t seed);

/// What runs have reached, by counts.
struct Coverage {
  struct Change {
    channel::Link::Phase from, to;
    Input input;
    auto operator<=>(const Change&) const = default;
  };
  struct Verdict {
    channel::Cause cause;
    bool told, stalled;
    auto operator<=>(const Verdict&) const = default;
  };
  std::map<channel::Link::Phase, std::uint64_t> entered;
  std::map<Change, std::uint64_t> changes;
  std::map<Verdict, std::uint64_t> verdicts;
  std::map<channel::DeadDirection, std::uint64_t> directions;
  channel::LinkCounters counters;
  std::uint64_t givenUp = 0;  ///< ends that gave up, as they had to

  Coverage& operator+=(const Coverage& other);
};

struct Outcome {
  std::vector<std::string> problems;  ///< none: all is well
  Coverage coverage;
  std::deque<std::string> trace;  ///< with SimOptions::trace
};

/// Runs a script and judges what it sees:
///
/// - every message arrives once and whole, every note once, memory given back stays untouched;
/// - of a failed rail no more than its window goes again, and no more twice than the tail budget;
/// - a rail is given up only if it has been broken since it was opened, and then both ends know
///   within a round trip;
/// - a rail is opened again only when its path has carried something since, and a rail that flaps
///   not before its hold-off; once nothing is broken any more all rails come back, work, and the
///   link falls silent;
/// - one clean fault is named rightly;
/// - when nothing can be saved, each end says so within its budget; otherwise none gives up.
Outcome play(const Script& script);

/// The shortest script that `fails` still, by leaving out one thing after the other.
Script shrink(Script script, const std::function<bool(const Script&)>& fails);

}  // namespace faultline::test
