#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "harness/cli/inject_target.h"
#include "injector/rdma/rdma_target.h"

namespace faultline::cli {

/// The device that `target` of a fault of this kind names: dev, and port and other_end if given.
/// kInvalidArgument when it names none, or anything else.
Result<rdma::RdmaTarget> rdmaTarget(std::string_view kind,
                                    const std::map<std::string, std::string>& target);

/// Completes `injection`, whose kind is of RDMA devices and whose target is read, with a fault of
/// the device that the target names.
Status addRdmaFault(const std::map<std::string, std::string>& parameters, Injection& injection);

}  // namespace faultline::cli
