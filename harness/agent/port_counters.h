#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/netlink/counters.h"
#include "wire/agent.h"

namespace faultline::agent {

/// What some interfaces have carried, for who wants to be told of it again and again.
class PortCounters {
 public:
  /// `networkFd`: of their namespace (borrowed); -1: that of the calling thread.
  static Result<PortCounters> open(int networkFd, const wire::WatchCounters& wanted);

  /// When they are to be told again.
  TimePoint due() const { return due_; }
  /// Whether what was read last tells nothing of now.
  bool isOld(TimePoint time) const { return time >= readAt_ + kFresh; }
  Result<wire::CountersTold> read(TimePoint time);

 private:
  static constexpr Duration kFresh = 1ms;
  PortCounters(netlink::CounterFile file, const wire::WatchCounters& wanted)
      : file_(std::move(file)), interfaces_(wanted.interfaces), every_(wanted.every) {}

  netlink::CounterFile file_;
  std::vector<std::string> interfaces_;
  Duration every_;
  TimePoint readAt_{};
  TimePoint due_{};
};

}  // namespace faultline::agent
