#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "resilient_ccl/schedule/end_queue.h"
#include "resilient_ccl/schedule/port_simulator.h"

namespace faultline::schedule {

/// PortModel::kFluid; see makePortSimulator. Rates change only where flows came or went: the ports
/// that are connected to those through flows are filled anew, the others are left alone.
class FluidPorts final : public PortSimulator {
 public:
  FluidPorts(const PortBandwidths& bandwidths, const std::vector<double>& links);

  void add(const Transfer& transfer, double time) override;
  std::optional<double> nextTime() override;
  std::vector<Finished> takeNext() override;

 private:
  struct Flow {
    int id = 0;
    std::int64_t stream = 0;
    /// Send port, receive port and, if limited, the link: all that it has to share.
    std::array<int, 3> ports{};
    std::size_t portCount = 2;
    double left = 0;
    double rate = 0;
    double since = 0;      ///< when `left` was true
    bool settled = false;  ///< while filling: its rate is known
  };
  struct Port {
    double capacity = 0;
    std::vector<int> flows;
    bool dirty = false;
    bool visited = false;
    double room = 0;    ///< while filling
    int unsettled = 0;  ///< while filling: flows whose rate still grows
    /// The rate at which those fill it.
    double level() const { return room / unsettled; }
  };
  std::span<const int> portsOf(int index) {
    return std::span(flow(index).ports).first(flow(index).portCount);
  }
  Flow& flow(int index) { return flows_[static_cast<std::size_t>(index)]; }
  Port& port(int index) { return ports_[static_cast<std::size_t>(index)]; }
  void start(const Transfer& transfer);
  void markDirty(int portIndex);
  void refill();
  void fillComponent(int firstPort);
  void setRate(int flowIndex, double rate);

  std::vector<Port> ports_;  ///< of rank i at 2i (send) and 2i + 1 (receive), then the links
  std::vector<Flow> flows_;
  int firstLink_ = 0;
  std::vector<int> freeFlows_;
  std::vector<int> dirtyPorts_;
  /// Transfers behind the moving one of their stream; a stream is here while one moves.
  std::unordered_map<std::int64_t, std::vector<Transfer>> queued_;
  EndQueue ends_;
  double now_ = 0;
  // While filling; here to keep their memory.
  std::vector<int> component_;
  std::vector<std::pair<double, int>> fullAt_;  ///< heap: levels of ports as last known
};

}  // namespace faultline::schedule
