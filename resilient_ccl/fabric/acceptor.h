#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/fabric/poller.h"
#include "resilient_ccl/transport/tcp/accept_rest.h"

namespace faultline::fabric {

/// Takes the connections of other processes: lets who connects prove that it has the job's key, and
/// hands over what is wanted. Not thread-safe.
class Acceptor {
 public:
  struct Calls {
    /// Sets the options of a connection that has just been accepted.
    std::function<Status(int)> configure;
    /// Whether the connection of this hello is wanted now.
    std::function<bool(const Hello&)> wanted;
    /// It is a rail now, answered.
    std::function<void(const Hello&, UniqueFd)> accepted;
  };

  /// `timeout`: who has not said hello by then is sent away. The poller and the authenticator must
  /// outlive this.
  Acceptor(Poller& poller, auth::Authenticator& authenticator, Duration timeout, Calls calls);

  /// Takes connections of this socket from now on: non-blocking, listening.
  Status listen(UniqueFd listener);
  /// Takes none of that socket any more, and closes it.
  void close(int listener);
  /// Sends away who has taken too long, and ends rests.
  void expire(TimePoint time);
  /// Connections closed because the other end did not have the job's key, said nonsense, did not
  /// end what it began to say, or was the oldest of too many that said nothing.
  std::uint64_t rejected() const { return rejected_; }
  std::size_t strangers() const { return strangers_.size(); }

  /// Connections that have not said hello yet, at most: a stray program cannot use up descriptors.
  /// When one more comes, the oldest goes.
  static constexpr std::size_t kMostStrangers = 256;
  /// Without a descriptor for a connection none is taken for so long.
  static constexpr Duration kRest = 100ms;

 private:
  void take(int listener);
  void watch(bool watched);
  void sendAway(std::list<Handshake>::iterator stranger);
  void advance(std::list<Handshake>::iterator stranger);

  Poller& poller_;
  auth::Authenticator& authenticator_;
  Duration timeout_;
  Calls calls_;
  std::vector<UniqueFd> listeners_;
  std::list<Handshake> strangers_;  // accepted, no hello yet
  std::uint64_t rejected_ = 0;
  transport::tcp::AcceptRest rest_{kRest};
  bool watched_ = true;  // all listeners
};

}  // namespace faultline::fabric
