#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/nccl/greeting.h"
#include "resilient_ccl/nccl/meeting.h"
#include "resilient_ccl/nccl/seldom.h"
#include "resilient_ccl/transport/tcp/accept_rest.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// Where other processes call: the rendezvous address of a process's handles. Whoever reaches the
/// address may call, so a caller is a stranger until it has proved that it has been given a handle
/// (`Meeting`); strangers are few and have little time. Never waits: one thread asks what to wait
/// for, and lets it attend. Not thread-safe.
class Door {
 public:
  struct Settings {
    std::uint32_t address = 0;  ///< to listen at, host byte order
    std::shared_ptr<const Identity> self;
    auth::JobKey token;   ///< of the handles that were given away
    Duration patience{};  ///< for who has proved itself, from its greeting on
    /// What is said to who has proved itself.
    std::function<Answer(const Greeting&)> answer;
  };
  static Result<std::unique_ptr<Door>> open(Settings settings);

  const transport::tcp::Endpoint& endpoint() const { return endpoint_; }
  /// Adds what has to be waited for now.
  void waitFor(std::vector<pollfd>& waits, TimePoint now) const;
  /// Takes calls, hears, answers.
  void attend(TimePoint now);
  std::size_t visitors() const { return visitors_.size(); }
  /// Callers that were refused: not proved, not understood, or one of too many that say nothing.
  /// Any thread may ask.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  /// A greeting is one small message, which is sent as soon as the challenge is heard. Who is busy
  /// for longer calls again (`Call`).
  static constexpr Duration kGreetingTime = 5s;
  /// When one more comes, the oldest goes.
  static constexpr std::size_t kMostStrangers = 64;
  /// But nobody goes before this: many ranks that call at once have to hear a challenge first.
  static constexpr Duration kLeastTime = 20ms;
  /// Without a descriptor for a caller none is taken for so long.
  static constexpr Duration kRest = 250ms;
  /// Between two lines of the log about who was refused.
  static constexpr Duration kComplaintPause = 5s;

 private:
  struct Visitor {
    Frames frames;
    transport::tcp::Endpoint from;
    std::string challenge;
    TimePoint came, deadline;
    bool heard = false;
    bool stranger = true;
  };

  explicit Door(Settings settings) : settings_(std::move(settings)) {}
  void admit(TimePoint now);
  bool hasRoom(TimePoint now) const;
  std::ptrdiff_t strangers() const;
  void makeRoom(TimePoint now);
  bool serve(Visitor& visitor, TimePoint now);
  void hear(Visitor& visitor, const std::string& frame, TimePoint now);
  Result<Greeting> examine(Visitor& visitor, const std::string& frame,
                           std::optional<Meeting>& meeting) const;
  void refuse(const Visitor& visitor, const std::string& why, TimePoint now);

  const Settings settings_;
  UniqueFd socket_;
  transport::tcp::Endpoint endpoint_;
  std::list<Visitor> visitors_;
  std::atomic<std::uint64_t> refused_{0};
  transport::tcp::AcceptRest rest_{kRest};
  Seldom complaints_{kComplaintPause};
};

}  // namespace faultline::nccl
