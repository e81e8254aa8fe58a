#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
    kKill,            ///< the machine of `end`
    kExit,            ///< the process `end`
    kDoubt,           ///< `end` is told that the other may be gone
    kCloseSends,      ///< of `stream`, at `end`
    kCloseReceives,   ///< of what the other end sends in `stream`, at `end`
  };
  /// Of a fault: until all messages are there.
  static constexpr Duration kForGood = Duration::max();
  /// Of a rail that is slow no more, in bytes per second.
  static constexpr double kFast = 20e6;
  static constexpr double kStuck = SimWorld::kStuckRate;

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
  int stream = 0;
  Bytes room = -1;                    ///< kMessages: of the receives; -1: as long as the messages
  bool sent = true, received = true;  ///< kMessages: posted at the sending, at the receiving end
  bool fromEnd0 = true, fromEnd1 = true;
  double rate = 0;
  bool beforehand = false;  ///< kPortDown, kBlackHole: the rail is dead when the links are made

  bool breaksRail() const;
  /// But datagrams.
  bool carriesNothing() const { return kind == Kind::kSlow && rate <= kStuck; }
  bool closesStream() const { return kind == Kind::kCloseSends || kind == Kind::kCloseReceives; }
  std::string toString() const;
};

/// Everything that happens in one run, in a form that can be made shorter.
struct Script {
  SimOptions options;
  std::vector<Action> actions;

  /// Nothing can save the job: a process is killed, or all rails are dead for good.
  bool fatal() const;
  bool closesStreams() const;
  /// Those that the beforehand dead rails belong to, too.
  SimOptions worldOptions() const;
  std::string toString() const;
};

/// The script of a seed: sizes, times, faults, pauses, losses.
Script randomScript(std::uint64_t seed);

/// One in which streams are closed, at either end, while their messages are under way, and others
/// meet receives that are too short.
Script closingScript(std::uint64_t seed);

}  // namespace faultline::test
