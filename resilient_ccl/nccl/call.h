#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/nccl/greeting.h"
#include "resilient_ccl/nccl/handle.h"

namespace faultline::nccl {

/// The side of a rendezvous that calls: who is here, to the address of a handle; and what is
/// answered. Calls again when the other end hangs up without an answer, as it does on who says
/// nothing for a while (`Door`): this process may have been stopped, or its host too busy; and when
/// there is no way to it, as there may be one again. That nobody listens there is final. Never
/// waits. Not thread-safe.
class Call {
 public:
  struct Settings {
    std::uint32_t from = 0;  ///< address to call from, host byte order
    Handle to;
    std::string greeting;
    TimePoint deadline;
    Duration patience{};  ///< that led to the deadline, for messages
  };
  static Result<Call> begin(Settings settings);

  /// Adds what has to be waited for now.
  void waitFor(std::vector<pollfd>& waits) const;
  /// Goes on with it. Nothing: no answer yet.
  Result<std::optional<Answer>> advance(TimePoint now);

  static constexpr Duration kRedial = 50ms;

 private:
  explicit Call(Settings settings) : settings_(std::move(settings)) {}
  Status dial(TimePoint now);
  void callAgain(std::string because, TimePoint now);
  Status late(TimePoint now, std::string_view what) const;
  std::string callee() const;

  Settings settings_;
  std::optional<Frames> frames_;  // nothing: between two calls
  bool connected_ = false;
  std::string ended_;  // how the last of them did
  TimePoint again_{};
};

}  // namespace faultline::nccl
