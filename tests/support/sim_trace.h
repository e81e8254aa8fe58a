#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "resilient_ccl/channel/link.h"

namespace faultline::test {

/// What a link is told, as far as it can change a rail.
enum class Input : std::uint8_t {
  kClient,  ///< a message or note is posted
  kTick,    ///< time: verdicts, failback
  kStall,   ///< time: the transport of a rail is found to be stuck
  kDatagram,
  kChunk,
  kPort,
  kReset,
  kHello,
  kOpened,
  kOpenFailed,
  kFenced,
  kStart,  ///< the work begins
};
std::string_view inputName(Input input);
std::string_view phaseName(channel::Link::Phase phase);

/// The latest things that happened in a simulated world, one line each.
class SimTrace {
 public:
  void add(TimePoint when, const std::string& line);
  /// The words about rails that `end` hears in a datagram.
  void addDatagram(TimePoint when, int end, int path, const channel::Datagram& datagram);
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

}  // namespace faultline::test
