#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/link_target.h"

namespace faultline::netlink {

/// What a FrameHold has taken, or given back.
struct HeldFrames {
  std::int64_t frames = 0;
  Bytes bytes = 0;
};

/// How many frames a FrameHold has seen.
struct HoldCounts {
  std::int64_t taken = 0;
  std::int64_t lost = 0;  ///< found no room
};

/// Which frames of an interface a FrameHold takes.
struct HeldSource {
  int ifindex = 0;
  Passing passing = Passing::kReceived;
  std::optional<MacAddress> destination{};  ///< only those for this address
};

/// Keeps copies of frames that pass interfaces, in the kernel's socket buffers, and sends them
/// later on another interface, as they were (segmentation and checksums that were left to the NIC
/// still are). Whoever wants them not to pass meanwhile drops them behind it (drop_filter.h).
/// One way of one link. Needs CAP_NET_RAW and CAP_NET_ADMIN; never waits.
class FrameHold {
 public:
  /// All sources are in the namespace of `socket`. Takes nothing yet.
  static Result<FrameHold> open(const Socket& socket, const std::vector<HeldSource>& sources,
                                const LinkEnd& outlet);

  /// Takes frames from now on; what was taken before is forgotten.
  Status begin();
  /// Takes no more frames. What there is stays.
  Status end();
  /// Sends what is held, oldest first of each source, until all is gone (true) or the outlet's
  /// queue is full (false): then to be called again. What comes while the outlet is down is gone:
  /// `refused`.
  Result<bool> release();

  /// Sent by release() since begin().
  const HeldFrames& released() const { return released_; }
  /// Frames that release() could not send since begin(), because the outlet was down.
  std::int64_t refused() const { return refused_; }
  /// Since begin().
  Result<HoldCounts> counts();

 private:
  struct Source {
    HeldSource what;
    UniqueFd fd;
  };
  FrameHold(std::vector<Source> sources, UniqueFd outlet)
      : sources_(std::move(sources)), outlet_(std::move(outlet)) {}
  Status forget();
  /// False: the outlet's queue is full.
  Result<bool> sendFrame();

  std::vector<Source> sources_;
  UniqueFd outlet_;
  std::vector<char> frame_;  ///< taken, and refused by the outlet so far
  HeldFrames released_;
  std::int64_t refused_ = 0;
  HoldCounts counts_;
};

}  // namespace faultline::netlink
