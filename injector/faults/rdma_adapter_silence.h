#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "injector/faults/still_watch.h"

namespace faultline::injector {

/// What an adapter counts by itself.
struct AdapterCounts {
  std::uint64_t sent = 0;      ///< packets that the port has sent
  std::uint64_t received = 0;  ///< packets that the port has received
  std::uint64_t requests = 0;  ///< writes, reads and atomics that have reached the transport
  /// Requests that the transport has repeated, as no answer came.
  std::uint64_t repeats = 0;
  /// Requests that have reached it a second time, as its answers did not arrive.
  std::uint64_t duplicates = 0;
};

/// Judges by an adapter's own counters whether its RDMA packets vanish. Nothing of ours passes
/// where they do, so it takes the job's load. What must not pass any more stands still for a
/// second, though it moved right before; and so that this is not a job that has ended or pauses,
/// somebody tries in vain in that very second. Pure.
///
/// Out: the port sends no packet, while the transport repeats requests, or gets some a second time.
///
/// In, where requests came before: none reaches the transport, while it repeats its own (and had
/// not to before); or while packets arrive at the port, which sends none. In, where none came: no
/// packet arrives at the port, while the transport repeats requests.
///
/// Both: as out, and what would come in stands still; nobody answers who hears nothing.
///
/// Where a port counts is not certain. What it counts in front of the steering tables does not
/// stand still, and there is no evidence then.
class AdapterSilence {
 public:
  AdapterSilence(bool out, bool in) : out_(out), in_(in) {}

  /// Two looks at the job's load right before the fault.
  void setBefore(const AdapterCounts& first, const AdapterCounts& last);
  /// Forgets what was seen in the fault.
  void restart();
  /// A look in the fault; `port_lives`: it is ACTIVE, with carrier.
  void observe(TimePoint now, const AdapterCounts& counts, bool port_lives);

  bool proven() const;
  /// For people: load before, silence and signs of life in the fault.
  std::string describe() const;

 private:
  /// What must stand still, and what must not.
  class Watch {
   public:
    void observe(TimePoint now, std::uint64_t passing, std::uint64_t tries);
    bool still() const;
    bool inVain() const { return still() && tries() > 0; }
    /// Tries in the time that nothing has passed.
    std::uint64_t tries() const { return tries_ - tries_at_last_; }
    double stillMilliseconds() const { return toMilliseconds(passing_.stillFor()); }

   private:
    StillWatch passing_;
    std::optional<std::uint64_t> last_;
    std::uint64_t tries_at_last_ = 0;
    std::uint64_t tries_ = 0;
  };

  /// Whether requests came in before, by which what comes in is judged then.
  bool getsRequests() const;

  bool out_;
  bool in_;
  AdapterCounts before_;  ///< what was counted between the two looks
  bool port_lives_ = false;
  Watch sent_;
  Watch accepted_;  ///< what comes in: requests, or packets
  Watch unheard_;   ///< requests and what is sent, against packets that arrive
};

}  // namespace faultline::injector
