#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Of clusters of kind rdma_vm: what guests of qemu cannot be, or cannot do. Of others: that they
/// have no RDMA devices.
void checkRdmaVm(const Scenario& scenario, const Node& root, Findings& findings);

}  // namespace faultline::scenario
