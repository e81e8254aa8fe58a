#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::comm {

/// The stream of the messages of a round (channel::MessageKey): that of a collective with a number
/// which no collective has, and no message between two (point_to_point.h).
constexpr std::uint64_t probeStream(std::uint64_t test, std::uint32_t round) {
  constexpr std::uint64_t kTestBit = std::uint64_t{1} << 46;
  constexpr int kRoundBits = 16;
  return (kTestBit | test << kRoundBits | round) << Executor::kLaneBits;
}

/// One rank's part of a round of a test of the ports: it sends as fast as it can to one rank, and
/// finds out how fast another one sends to it. Many small messages, so that a slow path does not
/// make it take long: what has not been sent in time travels as messages of one byte.
///
/// Driven by calls; no thread, no clock. Messages must arrive whole; their order does not matter.
class ProbeExchange {
 public:
  /// The first part is for what shapers let pass at once after a pause; then is measured. Both at
  /// the rate of a whole port.
  static constexpr Duration kWarm = 10ms;
  /// Of the first round, which is a glance, and of the others, which are to be exact although
  /// processes get a processor some milliseconds late.
  static constexpr Duration kGlance = 25ms;
  static constexpr Duration kMeasured = 75ms;
  /// A path that carries less than half of that is measured by what it carries in so many times
  /// the time.
  static constexpr int kPatience = 2;
  /// Of a message, at the rate of a whole port; and its limits.
  static constexpr Duration kMessage = 500us;
  static constexpr Bytes kSmallest = 4 << 10;
  static constexpr Bytes kLargest = 1 << 20;
  /// Kernels and shapers let packets of 64 KiB pass as one: on a slow path a handful of messages
  /// arrives at once, then none for 10 ms and more. What is measured begins and ends with such a
  /// burst. Those that come so many times faster than a whole port carries them are one.
  static constexpr int kBurst = 4;
  /// Messages under way, besides what hides the delay of a path: enough for processes that share
  /// their processors, few enough for paths of a few percent.
  static constexpr int kWindow = 16;

  struct Shape {
    Bytes message = 0;
    int messages = 0;
    Bytes warm = 0;
    int window = 0;
    Duration longest{};
    Duration gap{};  ///< messages that come closer to each other than this are of one burst
  };
  /// `bandwidth`: of a whole port; bytes per second. `round`: from 1 on.
  static Shape shapeFor(double bandwidth, double latency, std::uint32_t round);

  /// `to`, `from`: peers of `port`; nothing: that half is left out. Tokens are `token` plus a
  /// number below 2^32. `port` must outlive it.
  ProbeExchange(const Shape& shape, std::optional<int> to, std::optional<int> from,
                const channel::MessageKey& key, std::uint64_t token, MessagePort& port);

  void start(TimePoint now);
  /// The message with this token is done, and was so long.
  void messageDone(std::uint64_t token, Bytes length, TimePoint now);
  bool finished() const;

  /// Bytes per second that the path to this rank carried, at most; 0: nothing came.
  double rate() const;
  Bytes sent() const { return sentBytes_; }
  Bytes received() const { return bytes_; }

 private:
  static constexpr std::uint64_t kReceive = std::uint64_t{1} << 31;

  void postSends(TimePoint now);
  void postReceives();

  const Shape shape_;
  const std::optional<int> to_, from_;
  const channel::MessageKey key_;
  const std::uint64_t token_;
  MessagePort& port_;
  std::vector<std::byte> out_, in_;
  std::vector<int> freePlaces_;          // of in_, by message
  std::vector<int> placeOf_;             // of the receives, by message
  int sends_ = 0, sendsDone_ = 0;        // posted, and done
  int receives_ = 0, receivesDone_ = 0;  // likewise
  Bytes sentBytes_ = 0;
  TimePoint begun_{};

  struct Mark {
    Bytes bytes = 0;
    TimePoint when{};
  };
  Bytes bytes_ = 0;           // received
  std::optional<Mark> warm_;  // from here on is measured
  TimePoint latestArrival_{};
  Mark latest_;  // full message
};

}  // namespace faultline::comm
