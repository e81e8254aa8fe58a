#include "injector/faults/rdma_registry.h"

#include <array>

#include "injector/faults/rdma_link_delete.h"
#include "injector/faults/rdma_port_down.h"
#include "injector/faults/rdma_silent_drop.h"
#include "injector/faults/rdma_throttle.h"

namespace faultline::injector {
namespace {

using RdmaMaker = std::unique_ptr<Fault> (*)(const FaultParameters&, const rdma::RdmaTarget&);

template <typename Kind>
std::unique_ptr<Fault> makeRdma(const FaultParameters& parameters, const rdma::RdmaTarget& target) {
  return std::make_unique<Kind>(parameters, target);
}

constexpr std::array<std::pair<std::string_view, RdmaMaker>, 4> kRdmaMakers{{
    {"rdma_port_down", makeRdma<RdmaPortDown>},
    {"rdma_silent_drop", makeRdma<RdmaSilentDrop>},
    {"rdma_throttle", makeRdma<RdmaThrottle>},
    {"rdma_link_delete", makeRdma<RdmaLinkDelete>},
}};

}  // namespace

Result<std::unique_ptr<Fault>> makeRdmaFault(std::string_view kind,
                                             const FaultParameters& parameters,
                                             const rdma::RdmaTarget& target) {
  for (const auto& [name, maker] : kRdmaMakers) {
    if (name == kind) return maker(parameters, target);
  }
  return errorf(Code::kNotFound, "there is no fault of RDMA devices '{}'", kind);
}

}  // namespace faultline::injector
