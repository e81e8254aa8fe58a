#include "resilient_ccl/schedule/port_simulator.h"

#include "resilient_ccl/schedule/fluid_ports.h"
#include "resilient_ccl/schedule/one_ports.h"

namespace faultline::schedule {

std::unique_ptr<PortSimulator> makePortSimulator(PortModel model,
                                                 const PortBandwidths& bandwidths) {
  if (model == PortModel::kOnePort) return std::make_unique<OnePorts>(bandwidths);
  return std::make_unique<FluidPorts>(bandwidths);
}

}  // namespace faultline::schedule
