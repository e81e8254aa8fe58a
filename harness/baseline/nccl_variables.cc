#include "harness/baseline/nccl_variables.h"

#include "harness/baseline/strategy_table.h"

namespace faultline::baseline {

std::map<std::string, std::string> ncclVariables(std::string_view strategy,
                                                 const Parameters& options) {
  if (strategy != kNccl) return {};
  const bool failover = options.get<std::string>(kMode) == kPortFailover;
  const char* const on = failover ? "1" : "0";
  std::map<std::string, std::string> variables{
      {"NCCL_NET_PLUGIN", "none"},
      {"NCCL_IB_RESILIENCY_PORT_FAILOVER", on},  // 0 by default, since NCCL 2.29.7
      {"NCCL_IB_RESILIENCY_PORT_RECOVERY", on},  // likewise, since NCCL 2.30.3
  };
  // It fails over inside of a virtual NIC, and by default only ports of one card are made one.
  if (failover) variables["NCCL_NET_MERGE_LEVEL"] = "SYS";
  return variables;
}

}  // namespace faultline::baseline
