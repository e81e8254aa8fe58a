#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/nccl/greeting.h"
#include "resilient_ccl/nccl/handle.h"
#include "resilient_ccl/nccl/meeting.h"

namespace faultline::nccl {

/// The side of a rendezvous that calls: who is here, to the address of a handle; and what is
/// answered. Calls again when the other end hangs up without an answer, as it does on who says
/// nothing for a while (`Door`): this process may have been stopped, or its host too busy; when
/// there is no way to it, as there may be one again; and when who answers does not prove to be the
/// process of the handle, as that may still answer. That nobody listens there is final. Never
/// waits. Not thread-safe.
class Call {
 public:
  struct Settings {
    std::uint32_t from = 0;  ///< address to call from, host byte order
    Handle to;
    std::shared_ptr<const Identity> self;
    Greeting greeting{};  ///< but its key and nonce
    TimePoint deadline;
    Duration patience{};  ///< that led to the deadline, for messages
    std::string doubt{};  ///< why it may be in vain, said first when it was; empty: nothing
  };
  static Result<Call> begin(Settings settings);

  /// Adds what has to be waited for now.
  void waitFor(std::vector<pollfd>& waits) const;
  /// Goes on with it. Nothing: no answer yet.
  Result<std::optional<Answer>> advance(TimePoint now);

  /// How the last conversation has ended without an answer.
  const std::string& ended() const { return ended_; }
  /// Answers that were not proved.
  std::uint64_t refused() const { return refused_; }

  static constexpr Duration kRedial = 50ms;

 private:
  explicit Call(Settings settings) : settings_(std::move(settings)) {}
  Result<std::optional<Answer>> goOn(TimePoint now);
  Status withDoubt(const Status& failed) const;
  Status dial(TimePoint now);
  Status hear(TimePoint now, std::optional<Answer>& answer);
  void distrust(std::string_view why, TimePoint now);
  void callAgain(std::string because, TimePoint now);
  Status late(TimePoint now, std::string_view what) const;
  std::string callee() const;

  Settings settings_;
  std::optional<Frames> frames_;  // nothing: between two calls
  bool connected_ = false;
  std::optional<Meeting> meeting_;  // from the challenge on
  std::uint64_t refused_ = 0;
  std::string ended_;  // how the last of them did
  TimePoint again_{};
};

}  // namespace faultline::nccl
