#pragma once

#include <map>
#include <string>

#include "base/parameter.h"

namespace faultline::baseline {

/// Variables that the strategy `nccl` adds to a program's environment, by its option `mode`; empty
/// for other strategies. Defaults are said, too: who has set another one elsewhere must not change
/// what the row is. Pure. Sources: NCCL 2.30.7, src/transport/net_ib/p2p_resiliency*.cc, and the
/// user guide's list of variables.
std::map<std::string, std::string> ncclVariables(std::string_view strategy,
                                                 const Parameters& options);

}  // namespace faultline::baseline
