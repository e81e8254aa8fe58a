#include "resilient_ccl/schedule/port_simulator.h"

#include "resilient_ccl/schedule/fluid_ports.h"
#include "resilient_ccl/schedule/one_ports.h"

namespace faultline::schedule {

std::unique_ptr<PortSimulator> makePortSimulator(PortModel model, const PortBandwidths& bandwidths,
                                                 const std::vector<double>& links) {
  if (model == PortModel::kOnePort) return std::make_unique<OnePorts>(bandwidths, links);
  return std::make_unique<FluidPorts>(bandwidths, links);
}

}  // namespace faultline::schedule
