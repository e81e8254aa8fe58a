#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "resilient_ccl/comm/group_planner.h"
#include "resilient_ccl/comm/plan_event.h"
#include "resilient_ccl/comm/plan_worker.h"
#include "resilient_ccl/comm/probe_exchange.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/plan/health_feed.h"
#include "resilient_ccl/plan/port_sampler.h"

namespace faultline::comm {

/// What the planning of a process asks of its engine.
struct PlanningCalls {
  std::function<void(const Status&)> fail;
  std::function<void(PlanEvent)> event;
  std::function<void(const PortTestEvent&)> tested;
  /// Has something done on the progress thread, soon; from any thread.
  std::function<void(std::function<void()>)> onProgressThread;
};

/// The planning half of an engine: looks at the ports of the process, and keeps a planner for each
/// communicator that plans. On the progress thread; the plans are chosen on a thread of its own.
class Planning {
 public:
  /// `fabric` must outlive it. `feed`: null when health is what is measured.
  Planning(fabric::Fabric& fabric, int self, int rails, std::shared_ptr<plan::HealthFeed> feed,
           PlanningCalls calls);
  ~Planning();

  /// A communicator plans from now on; `members`: its processes.
  void add(std::uint32_t communicator, std::vector<int> members, PlanSettings settings);
  /// It is gone: nothing more is called in it. A test of the ports goes on to its end, because the
  /// others need this rank for it.
  void remove(std::uint32_t communicator);

  /// As of GroupPlanner::next: the program of the next collective of a communicator, null for one
  /// that is not planned. Tells of a plan that is used for the first time.
  struct Go {
    std::shared_ptr<const Program> program;
    bool tried = false;  ///< GroupPlanner::Go
  };
  std::optional<Go> next(std::uint32_t communicator, const std::optional<PlanKey>& key,
                         TimePoint now);
  /// The collective with this number among those of its communicator is done.
  void done(std::uint32_t communicator, std::uint64_t operation, TimePoint now);

  /// Tokens with this bit are of messages of tests.
  static constexpr std::uint64_t kTestToken = std::uint64_t{1} << 63;
  /// A message with such a token is done.
  void messageDone(std::uint64_t token, Bytes length, TimePoint now);
  /// Ports are being tested, or are going to be.
  bool testing() const;

  /// Whether it was a planner's word.
  bool wordArrived(int process, std::span<const std::byte> bytes, TimePoint now);
  /// To be called every few milliseconds while there is traffic.
  void onTick(TimePoint now);

 private:
  /// Pause between two observations that are told to the coordinator.
  static constexpr Duration kReportPause = 50ms;
  /// A path is loaded from so many bytes outstanding on, and from twice what its delay hides.
  static constexpr Bytes kLeastLoad = 128 << 10;
  /// Words for a communicator that this process has not made yet, at most.
  static constexpr std::size_t kMostEarlyWords = 4096;
  /// Of exchanges, in bits 32 to 62 of their tokens; then they begin anew.
  static constexpr std::uint32_t kExchangeNumbers = 0x7fffffff;

  class Member;
  struct Exchange;

  void begin(Member& member, const TestRound& round);
  void endFinished(TimePoint now);
  std::uint16_t shareOf(const Exchange& exchange);

  const int self_;
  const int rails_;
  fabric::Fabric& fabric_;
  const std::shared_ptr<plan::HealthFeed> feed_;
  const PlanningCalls calls_;
  std::map<std::uint32_t, std::unique_ptr<Member>> groups_;
  std::set<std::uint32_t> known_;  // communicators that are, or were, here
  std::vector<std::pair<int, PlanWord>> early_;
  std::optional<plan::PortSampler> sampler_;
  std::vector<std::optional<channel::LinkLoad>> loads_;
  TimePoint lookDue_{}, reportDue_{};
  std::map<std::uint32_t, Exchange> exchanges_;  // by the number in their tokens
  std::uint32_t nextExchange_ = 0;
  PlanWorker worker_;  // last: its thread ends first
};

}  // namespace faultline::comm
