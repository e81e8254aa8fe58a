#pragma once

#include <vector>

#include "base/status.h"
#include "wire/agent.h"
#include "wire/guest.h"

namespace faultline::rdma_vm {

/// Makes the computer that this process runs on a host of a laboratory: its name, the names and
/// addresses of its NICs, an rxe device on each rail, all of them active. Inside a guest only.
Status setUpGuest(const wire::GuestSetup& setup);

/// By rail.
std::vector<wire::RailState> readRailStates(int rails);

}  // namespace faultline::rdma_vm
