#include "injector/faults/registry.h"

#include <array>

#include "injector/faults/address_change.h"
#include "injector/faults/blackhole.h"
#include "injector/faults/connection_reset.h"
#include "injector/faults/host_overload.h"
#include "injector/faults/late_delivery.h"
#include "injector/faults/loss.h"
#include "injector/faults/none.h"
#include "injector/faults/path_cut.h"
#include "injector/faults/path_flap.h"
#include "injector/faults/port_down.h"
#include "injector/faults/port_flap.h"
#include "injector/faults/process_kill.h"
#include "injector/faults/process_stop.h"
#include "injector/faults/throttle.h"
#include "injector/faults/verbs_fault.h"

namespace faultline::injector {
namespace {

using Maker = std::unique_ptr<Fault> (*)(const FaultParameters&, const netlink::LinkTarget&);

template <typename Kind>
std::unique_ptr<Fault> make(const FaultParameters& parameters, const netlink::LinkTarget& target) {
  return std::make_unique<Kind>(parameters, target);
}

/// In all programs of the namespace that have the shim.
template <verbs::Effect effect>
std::unique_ptr<Fault> makeVerbs(const FaultParameters& parameters,
                                 const netlink::LinkTarget& target) {
  return std::make_unique<VerbsFault>(effect, parameters, programsOf(target));
}

constexpr std::array<std::pair<std::string_view, Maker>, 21> kMakers{{
    {"port_down", make<PortDown>},
    {"port_flap", make<PortFlap>},
    {"throttle", make<Throttle>},
    {"blackhole", make<Blackhole>},
    {"path_flap", make<PathFlap>},
    {"late_delivery", make<LateDelivery>},
    {"one_way_loss", make<OneWayLoss>},
    {"path_cut", make<PathCut>},
    {"loss", make<RandomLoss>},
    {"connection_reset", make<ConnectionReset>},
    {"address_change", make<AddressChange>},
    {"process_stop", make<ProcessStop>},
    {"process_kill", make<ProcessKill>},
    {"qp_error", makeVerbs<verbs::Effect::kQpError>},
    {"post_error", makeVerbs<verbs::Effect::kPostError>},
    {"completion_rewrite", makeVerbs<verbs::Effect::kCompletionRewrite>},
    {"completion_loss", makeVerbs<verbs::Effect::kCompletionLoss>},
    {"qp_delay", makeVerbs<verbs::Effect::kQpDelay>},
    {"qp_rate", makeVerbs<verbs::Effect::kQpRate>},
    {"host_overload", make<HostOverload>},
    {"none", make<None>},
}};

}  // namespace

Result<std::unique_ptr<Fault>> makeFault(std::string_view kind, const FaultParameters& parameters,
                                         const netlink::LinkTarget& target) {
  for (const auto& [name, maker] : kMakers) {
    if (name == kind) return maker(parameters, target);
  }
  return errorf(Code::kNotFound, "there is no fault '{}'", kind);
}

}  // namespace faultline::injector
