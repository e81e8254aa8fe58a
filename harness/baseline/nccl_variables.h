#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/parameter.h"

namespace faultline::baseline {

/// In the folder of a process: where it tells that it made its communicator anew.
inline constexpr std::string_view kRecoveryFile = "recovery.txt";

/// Variables that the strategy `nccl` adds to a program's environment, by its option `mode`; empty
/// for other strategies. Defaults are said, too: who has set another one elsewhere must not change
/// what the row is. Placeholders ({output}) are still to be replaced. FAULTLINE_NCCL_RECOVERY and
/// what comes with it tell the program what it is to do itself: docs/command.md. Pure. Sources:
/// NCCL 2.30.7, src/transport/net_ib/p2p_resiliency*.cc, and the user guide's list of variables.
std::map<std::string, std::string> ncclVariables(std::string_view strategy,
                                                 const Parameters& options);

}  // namespace faultline::baseline
