#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/spsc_queue.h"
#include "resilient_ccl/telemetry/event.h"

namespace faultline::telemetry {

/// What becomes of events.
enum class Mode : std::uint8_t {
  kOff,   ///< none are made
  kNull,  ///< made and thrown away: what the instrumentation itself costs
  kOn,    ///< made and kept
};

/// "off", "null", "on".
std::string_view nameOf(Mode mode);

/// The ring of one progress thread. `record` is the producer's and never waits: when the ring is
/// full, the event is dropped and counted. `take` is the consumer's, on another thread.
class Recorder {
 public:
  /// Events that fit while the consumer looks away: at 40 Gbit/s in chunks of 64 KiB, both ways,
  /// 50 ms.
  static constexpr std::size_t kRing = 8192;

  /// `mode` is kNull or kOn: who wants none has no recorder.
  explicit Recorder(Mode mode);

  void record(const Event& event);

  std::optional<Event> take() { return ring_.pop(); }

  /// Events made so far, and those of them that found the ring full. Any thread.
  std::uint64_t made() const { return made_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static void increment(std::atomic<std::uint64_t>& counter) {
    // One writer: no need to lock the bus.
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  const bool keeps_;
  SpscQueue<Event> ring_;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace faultline::telemetry
