#pragma once

#include "injector/fault_table.h"

namespace faultline::injector {

/// Faults of RDMA devices: rows as in faultKinds(), apart from them because no cluster of a
/// scenario has such devices. `faultline list`, `describe` and `inject` know them.
std::span<const FaultKind> rdmaFaultKinds();

/// nullptr when there is none of that name.
const FaultKind* findRdmaFaultKind(std::string_view name);

}  // namespace faultline::injector
