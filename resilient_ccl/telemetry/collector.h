#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/periodically.h"
#include "resilient_ccl/telemetry/recorder.h"

namespace faultline::telemetry {

/// What a process has recorded.
struct Trace {
  std::vector<Event> events;
  std::uint64_t made = 0;     ///< events that happened
  std::uint64_t dropped = 0;  ///< those of them that are not in `events`
};

/// Empties the ring of a recorder now and then, on a thread of its own, into memory that is
/// bounded: what comes when it is full is dropped and counted.
class Collector {
 public:
  /// Pause between two looks at the ring.
  static constexpr Duration kPause = 20ms;
  /// Events kept; of chunks and messages, which are many, so many fewer that there is always room
  /// for what happens to rails.
  static constexpr std::size_t kMostEvents = 16384;
  static constexpr std::size_t kMostTransfers = kMostEvents - 2048;

  /// `recorder` must outlive the collector.
  explicit Collector(Recorder& recorder);

  /// Everything so far. Any thread.
  Trace trace();

 private:
  void drain();

  Recorder& recorder_;
  // Both only between, or in, what the thread does.
  std::vector<Event> events_;
  std::uint64_t unkept_ = 0;
  Periodically drains_;
};

}  // namespace faultline::telemetry
