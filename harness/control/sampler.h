#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/site/cluster.h"
#include "reports/result.h"

namespace faultline::run {

/// Samples the cluster's interface counters: totals and a series over time for the report, sums
/// for triggers and proofs.
class Sampler {
 public:
  /// Width of a bin of the series: fine enough to see one iteration, coarse enough to plot.
  static constexpr Duration kBin = 20ms;

  explicit Sampler(site::Cluster& cluster);
  /// Of what is no cluster; `read` fills in the counters of all NICs, [node * rails + rail].
  using Read = std::function<Status(std::vector<site::RailCounters>&)>;
  Sampler(int nodes, int rails, Read read);

  /// Reads all counters now. Reading takes some tenths of a millisecond of a processor.
  Status sample(TimePoint when);
  /// Reads them if a bin of the series has ended since they were last read, so that who calls this
  /// each millisecond has the whole series, and takes next to nothing from what is measured.
  Status keepUp(TimePoint when);
  /// Reads all counters; the series and the totals begin now. If they cannot be read, keepUp says
  /// it.
  void start(TimePoint when);

  /// Bytes moved by all rails of a node, both directions, since the cluster exists; when they were
  /// last read.
  std::uint64_t nodeBytes(int node) const;
  /// The same of all other nodes.
  std::uint64_t otherBytes(int node) const;

  /// As site::Cluster::payloadDelivered().
  Result<std::uint64_t> payloadDelivered();

  std::vector<reports::RailTotals> totals() const;
  std::vector<reports::RailSeries> series() const;

 private:
  int nodes_;
  int rails_;
  Read read_;
  site::Cluster* cluster_ = nullptr;  // null: there is none
  std::vector<site::RailCounters> now_, last_, first_;
  TimePoint readAt_{};
  TimePoint start_ = TimePoint::max();
  std::vector<std::vector<std::int64_t>> bins_;  // per node and rail
};

}  // namespace faultline::run
