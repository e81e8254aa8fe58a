#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/nccl/greeting.h"
#include "resilient_ccl/nccl/seldom.h"
#include "resilient_ccl/transport/tcp/accept_rest.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// Where other processes call: the rendezvous address of a process's handles. Whoever reaches the
/// address may call, so a caller is a stranger until it has shown the token of a handle; strangers
/// are few and have little time. Never waits: one thread asks what to wait for, and lets it attend.
/// Not thread-safe.
class Door {
 public:
  struct Settings {
    std::uint32_t address = 0;  ///< to listen at, host byte order
    auth::JobKey token;         ///< of the handles that were given away
    Duration patience{};        ///< for who has shown the token, from its greeting on
    /// What is said to who has shown the token.
    std::function<Answer(const Greeting&)> answer;
  };
  static Result<std::unique_ptr<Door>> open(Settings settings);

  const transport::tcp::Endpoint& endpoint() const { return endpoint_; }
  /// Adds what has to be waited for now.
  void waitFor(std::vector<pollfd>& waits, TimePoint now) const;
  /// Takes calls, hears, answers.
  void attend(TimePoint now);
  std::size_t visitors() const { return visitors_.size(); }

  /// A greeting is one small message, which is sent as soon as the call is taken. Who is busy for
  /// longer calls again (`Call`).
  static constexpr Duration kGreetingTime = 5s;
  /// When one more comes, the oldest goes.
  static constexpr std::size_t kMostStrangers = 64;
  /// Without a descriptor for a caller none is taken for so long.
  static constexpr Duration kRest = 250ms;
  /// Between two lines of the log about who was refused.
  static constexpr Duration kComplaintPause = 5s;

 private:
  struct Visitor {
    Frames frames;
    transport::tcp::Endpoint from;
    TimePoint deadline;
    bool heard = false;
    bool stranger = true;
  };

  explicit Door(Settings settings) : settings_(std::move(settings)) {}
  void admit(TimePoint now);
  void makeRoom(TimePoint now);
  bool serve(Visitor& visitor, TimePoint now);
  void hear(Visitor& visitor, const std::string& frame, TimePoint now);
  void complain(const Visitor& visitor, const std::string& why, TimePoint now);

  const Settings settings_;
  UniqueFd socket_;
  transport::tcp::Endpoint endpoint_;
  std::list<Visitor> visitors_;
  transport::tcp::AcceptRest rest_{kRest};
  Seldom complaints_{kComplaintPause};
};

}  // namespace faultline::nccl
