#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/faultd/dialogue.h"
#include "harness/faultd/helpers.h"
#include "harness/launch/local_socket.h"
#include "harness/launch/message_channel.h"
#include "harness/launch/process.h"
#include "injector/safety/journal.h"

namespace faultline::faultd {

/// One connection of the service, with the child that serves it.
class Client {
 public:
  /// No message of a client is larger.
  static constexpr std::size_t kLargestMessage = 64 * 1024;

  /// `task` has the files of the service.
  Client(UniqueFd fd, launch::LocalPeer peer, Task task, const safety::Journal& journal,
         TimePoint connected);

  const launch::LocalPeer& peer() const { return peer_; }
  bool silent() const { return dialogue_.silent(); }
  bool hasChild() const { return child_.has_value(); }
  /// Served, and nothing says yet that it may: it makes room for others.
  bool displaceable() const { return child_ && !ended_at_ && !dialogue_.admitted(); }
  /// Nothing is left to do: it may be forgotten.
  bool over() const { return over_; }
  /// A child has ended by itself: it may have left something.
  bool mayHaveLeft() const { return may_have_left_; }

  /// What to wait for.
  void addTo(std::vector<pollfd>& ready) const;
  /// When to go on at the latest.
  std::optional<TimePoint> due(TimePoint now) const;

  /// Goes on with whatever is there. `mayStart`: why no child may be started, or ok. True when more
  /// is there, as others must have their turn.
  bool goOn(TimePoint now, const std::function<Status()>& mayStart);

  /// Ends one that is displaceable() at once: its child has changed nothing.
  void displace(Status why, TimePoint now);

  /// Ends it: the child is told to take back what it holds, and then the client why.
  void end(Status why, TimePoint now);

 private:
  bool hearClient(TimePoint now, const std::function<Status()>& mayStart);
  bool hearChild(TimePoint now);
  void obey(const wire::ToService& said, const std::function<Status()>& mayStart, TimePoint now);
  void start(int (*body)(), const std::function<Status()>& mayStart, TimePoint now);
  void awaitChild(TimePoint now);
  /// Whether something of what its child has changed is in effect.
  bool stillLasts() const;
  void tell(const nlohmann::json& message, TimePoint now);
  void note(const std::string& what) const;

  launch::MessageChannel channel_;
  launch::LocalPeer peer_;
  Task task_;
  const safety::Journal& journal_;
  Dialogue dialogue_;
  std::optional<launch::Process> child_;
  bool child_hears_ = false;           ///< its channel is open
  std::optional<TimePoint> ended_at_;  ///< since when it is to end
  Status why_;
  bool client_gone_ = false;
  TimePoint next_look_{};
  bool over_ = false;
  bool may_have_left_ = false;
  bool killed_ = false;  ///< its child hangs
};

}  // namespace faultline::faultd
