#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/channel_script.h"

namespace faultline::test {

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
  Bytes arrivedTwice = 0;     ///< over a failed rail and another one
  int explained = 0;          ///< failovers whose cause was found out after the report
  int failedSends = 0, failedReceives = 0;  ///< messages of streams that were closed, or too long
  std::uint64_t missing = 0;                ///< rails that were dead when the links were made

  Coverage& operator+=(const Coverage& other);
};

/// Watches the rails of a simulated world and compares what the two links do with what is really
/// broken. It shares no logic with the link.
class Referee {
 public:
  Referee(SimWorld& world, const Script& script);

  /// To be told of every change of a rail.
  void changed(const RailChange& change);
  /// To be told of every change of what `end` thinks of a rail's speed.
  void degraded(int end, const channel::RailDegradation& change);
  /// Judges the failovers that the ends have reported; to be called at the end.
  void judgeFailovers();
  /// Whether the one short outage was noticed; to be called at the end.
  void judgeShortOutage();
  void judgeCopies(const channel::LinkCounters& counters);

  std::vector<std::string>& problems() { return problems_; }
  Coverage& coverage() { return coverage_; }

 private:
  void givenUp(const RailChange& change);
  void reopened(const RailChange& change);
  void expectPeerKnows(const RailChange& change, TimePoint told);
  /// The only fault, when it is one of this kind and there is nothing else that could mislead
  /// anybody; or null.
  const Action* only(Action::Kind kind) const;

  struct RailState {
    std::map<std::uint32_t, TimePoint> firstUp;  // by epoch
    TimePoint cancelled{};                       // an attempt to connect, as the work began
    TimePoint closed{};                          // at the connecting end, the last time
    TimePoint upAgain{};                         // since when it is up there after a failure
    Duration holdOff{};
  };

  SimWorld& world_;
  const Script& script_;
  std::vector<RailState> rails_;
  std::vector<std::string> problems_;
  Coverage coverage_;
};

}  // namespace faultline::test
