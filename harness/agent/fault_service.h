#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "wire/agent.h"

/// What an agent has to do with the fault service of its machine (wire/service.h).
namespace faultline::agent {

/// Connects to it. kUnavailable, with what to do, where there is none.
Result<launch::MessageChannel> connectToService(const std::string& socket);

/// Sends an empty datagram to each of these addresses, to the port at which nobody cares (RFC 863).
void greet(const std::vector<std::string>& peers);

/// A fault that the service holds. It is taken back with this object: the connection ends, as it
/// does with this process, however that ends.
class ServiceHolder {
 public:
  /// Has it hold a fault of an interface, which it takes back when it has heard nothing for
  /// `lease`. Where it cannot be told that, each call has the reason for an answer. `socket`: its
  /// path.
  ServiceHolder(const wire::HeldFault& fault, Duration lease, const std::string& socket);

  /// Of what it says; -1: it says nothing any more.
  int fd() const { return service_ ? service_->fd() : -1; }
  Status tell(const wire::ToHolder& message);
  /// What it says next, if that has come; wire::Gone once it has ended, and nothing from then on.
  std::optional<wire::FromHolder> heard();

  /// When it must hear that somebody is there still.
  TimePoint due() const { return service_ ? due_ : TimePoint::max(); }
  /// Says so.
  void stillThere(TimePoint now);

 private:
  Status send(const wire::ToService& message);

  std::optional<launch::MessageChannel> service_;
  Status trouble_;
  std::optional<wire::FromHolder> answer_;  // ours, to what the service was not told
  Duration interval_;
  TimePoint due_;
};

/// A question to the service, and its answer.
class ServiceQuestion {
 public:
  ServiceQuestion(const wire::AskService& question, const std::string& socket);
  int fd() const { return service_ ? service_->fd() : -1; }
  /// When it is too late for an answer.
  TimePoint due() const { return deadline_; }
  /// The answer, once it is there, or why there is none.
  std::optional<wire::FaultServiceTold> answer(TimePoint now);

 private:
  std::optional<launch::MessageChannel> service_;
  Status trouble_;
  TimePoint deadline_;
};

}  // namespace faultline::agent
