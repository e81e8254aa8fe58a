#pragma once

#include <queue>
#include <set>
#include <vector>

#include "resilient_ccl/schedule/port_simulator.h"

namespace faultline::schedule {

/// PortModel::kOnePort; see makePortSimulator.
class OnePorts final : public PortSimulator {
 public:
  OnePorts(const PortBandwidths& bandwidths, const std::vector<double>& links)
      : bandwidths_(bandwidths), links_(links), ports_(2 * bandwidths_.size()) {}

  void add(const Transfer& transfer, double time) override;
  std::optional<double> nextTime() override;
  std::vector<Finished> takeNext() override;

 private:
  struct Port {
    bool busy = false;
    std::set<int> waiting;  ///< transfers by order of arrival
  };
  struct End {
    double time;
    int arrival;
    bool operator>(const End& other) const {
      return std::pair(time, arrival) > std::pair(other.time, other.arrival);
    }
  };
  Port& sendPort(int arrival) { return ports_[2 * rankAt(transfers_[index(arrival)].from)]; }
  Port& receivePort(int arrival) { return ports_[2 * rankAt(transfers_[index(arrival)].to) + 1]; }
  static std::size_t rankAt(int rank) { return static_cast<std::size_t>(rank); }
  static std::size_t index(int arrival) { return static_cast<std::size_t>(arrival); }
  /// Starts what can start now. Deferred until time moves on, so that all that happens at one
  /// instant is known before ports are given away.
  void startWaiting();
  bool startIfFree(int arrival);

  PortBandwidths bandwidths_;
  std::vector<double> links_;
  std::vector<Port> ports_;
  std::vector<Transfer> transfers_;  ///< by order of arrival
  std::vector<int> added_;           ///< since ports were last given away, by order of arrival
  std::vector<Port*> freed_;         ///< likewise: ports at which others may be waiting
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  double now_ = 0;
};

}  // namespace faultline::schedule
