#pragma once

#include "injector/safety/entry.h"
#include "injector/safety/host_machine.h"

namespace faultline::strike {

/// Runs the commands of the policy for this strike, without a shell: FAULTLINE_KIND,
/// FAULTLINE_INTERFACE and FAULTLINE_STRIKE are in their environment.
safety::HostMachine::Run policyCommand(const safety::Entry& entry);

}  // namespace faultline::strike
