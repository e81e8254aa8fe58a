#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/telemetry/event.h"

namespace faultline::nccl {

/// What happened to the rails to one peer, and what they had sent by when, in bounded memory: a job
/// of weeks keeps its first events, and samples that are farther and farther apart. Not
/// thread-safe.
class History {
 public:
  static constexpr std::size_t kMostEvents = 4096;
  static constexpr std::size_t kMostSamples = 1024;
  /// Between samples, as long as there are few.
  static constexpr Duration kFirstPause = 100ms;

  struct Happening {
    telemetry::Event event;
    channel::Cause cause = channel::Cause::kNone;  ///< of a failover
    Duration pause{};                              ///< of a failover: Failover::receiveStall
  };
  struct Sample {
    TimePoint at;
    std::vector<Bytes> sentByRail;  ///< since the rails came up
  };

  void add(const Happening& happening);
  /// Whether it is time for another sample.
  bool due(TimePoint now) const;
  void sample(TimePoint at, std::vector<Bytes> sentByRail);

  const std::vector<Happening>& happenings() const { return happenings_; }
  const std::vector<Sample>& samples() const { return samples_; }
  /// Events for which there was no room.
  std::uint64_t dropped() const { return dropped_; }

 private:
  std::vector<Happening> happenings_;
  std::vector<Sample> samples_;
  Duration pause_ = kFirstPause;
  std::uint64_t dropped_ = 0;
};

struct PeerHistory {
  std::string peer;
  History history;
  std::vector<std::string> devices{};  ///< of the rails, by their latest names; empty: as at first
};

/// A trace of this process in Chrome's trace event format ("JSON Object Format"), from the first
/// thing in it on: each peer is a group of tracks, one for each rail; failovers are slices, the
/// bytes sent over a rail a counter.
std::string traceJson(const std::vector<Device>& devices, const std::vector<PeerHistory>& peers);

}  // namespace faultline::nccl
