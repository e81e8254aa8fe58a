#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/site/hosts/connection.h"
#include "harness/site/hosts/hosts_spec.h"

namespace faultline::hosts {

/// Connects to all hosts of a cluster, some at a time: as one has come, or fails, the next begins.
/// Whoever has not come yet when it is destroyed is killed at once, with what it has started.
class Connector {
 public:
  /// How many may be on their way. An sshd turns some away when more than 10 have not authenticated
  /// (MaxStartups 10:30:100, sshd_config(5)), and all may go through that of one jump host; two are
  /// left for others.
  static constexpr int kMostAtOnce = 8;

  /// `ownProgram`: the path of this program.
  Connector(const HostsSpec& spec, std::string ownProgram);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  /// One whose agent has greeted, or why there is none.
  struct Arrived {
    int host = 0;
    Result<Connection> connection;
  };
  /// Begins as many as may be, and waits for at most `timeout` until some have arrived.
  std::vector<Arrived> step(Duration timeout);
  /// Each host has been told of.
  bool done() const { return next_ == spec_.names.size() && coming_.empty(); }

 private:
  struct Coming {
    Connection connection;
    TimePoint deadline{};
  };
  void begin(std::vector<Arrived>& arrived);

  const HostsSpec& spec_;
  std::string program_;
  std::size_t next_ = 0;
  std::map<int, Coming> coming_;
};

}  // namespace faultline::hosts
