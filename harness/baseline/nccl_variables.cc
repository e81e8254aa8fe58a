#include "harness/baseline/nccl_variables.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "harness/baseline/strategy_table.h"

namespace faultline::baseline {

std::map<std::string, std::string> ncclVariables(std::string_view strategy,
                                                 const Parameters& options) {
  const StrategySpec* const spec = findStrategy(strategy);
  if (spec == nullptr || !spec->setsUpNccl) return {};
  const std::string& mode = options.get<std::string>(kMode);
  const bool failover = mode == kPortFailover;
  const char* const on = failover ? "1" : "0";
  std::map<std::string, std::string> variables{
      {"NCCL_NET_PLUGIN", "none"},
      {"NCCL_IB_RESILIENCY_PORT_FAILOVER", on},  // 0 by default, since NCCL 2.29.7
      {"NCCL_IB_RESILIENCY_PORT_RECOVERY", on},  // likewise, since NCCL 2.30.3
  };
  // It fails over inside of a virtual NIC, and by default only ports of one card are made one.
  if (failover) variables["NCCL_NET_MERGE_LEVEL"] = "SYS";
  // What only the program can do: docs/command.md.
  if (rebuildsItself(mode)) {
    variables["FAULTLINE_NCCL_RECOVERY"] = mode;
    variables["FAULTLINE_NCCL_WAIT_MS"] = fmt::format(
        "{}", std::chrono::ceil<std::chrono::milliseconds>(options.get<Duration>(kWait)).count());
    variables["FAULTLINE_NCCL_RECOVERY_FILE"] = fmt::format("{{output}}/{}", kRecoveryFile);
  } else {
    variables["FAULTLINE_NCCL_RECOVERY"] = "none";
  }
  return variables;
}

}  // namespace faultline::baseline
