#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "harness/inference/accounting.h"
#include "harness/scenario/scenario.h"
#include "harness/workload/rank_config.h"
#include "reports/result.h"
#include "wire/rank.h"

namespace faultline::run {

/// The clients of a server in one run: what they ask for, and what came of it. They outlive the
/// server: after a restart they ask again for what they have not got. Messages in, no clock.
class ServingRecord {
 public:
  /// All rows of a block are asked for the same.
  ServingRecord(const scenario::Scenario& scenario, int block);

  void begun(const wire::Begin& message);
  void ended(int rank, const wire::End& message);
  void told(const wire::Rate& message);
  void told(const wire::Token& message);
  void told(const wire::Step& /*message*/) { ++steps_; }
  void served(int rank, const wire::Served& message);

  /// For ranks that start now.
  workload::ServerConfig whatIsLeft() const;
  /// Requests that were begun and are not over.
  int underWay() const;

  /// Requests per second that are asked for, by rate.
  std::vector<double> rates() const;

  /// Adds requests, counters and throughput to the result; `ended`: the run came to its end.
  void finish(reports::Run& run, TimePoint t0, bool ended);

 private:
  struct Entry {
    int rate = 0;
    inference::Request request;
    std::optional<TimePoint> first{};
    std::optional<TimePoint> last{};
    int begun = 0;
  };
  const inference::Serving serving_;
  const std::vector<inference::Arrivals> rates_;
  std::map<int, Entry> requests_;
  std::map<int, TimePoint> starts_;  // by rate
  std::int64_t steps_ = 0;
  std::map<int, double> lateMs_;  // by rank
};

}  // namespace faultline::run
