#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"
#include "harness/command/command.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/command/section/checks.h"
#include "harness/workload/command/section/json.h"
#include "harness/workload/command/section/reader.h"
#include "harness/workload/command/section/table.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 1> kCommandKeys{"command"};

// How a program gets the shim (docs/verbs.md): by its path, or by a variable that loads a library
// whatever its path is called.
constexpr std::array<std::string_view, 5> kSignsOfShim{
    "{verbs_shim}", "libfaultline-verbs", "LD_PRELOAD", "NCCL_IBVERBS_LIB", "MSCCLPP_IBV_SO"};

void readPrograms(const WorkloadReading& reading, Workload& workload) {
  workload.command = readCommand(reading.root, reading.values, reading.cluster, reading.findings);
}

std::string whyNotTold(std::string_view metric, const Workload& workload) {
  const command::Command& command = workload.command;
  if (command.progress.empty() && metric.starts_with("iteration_ms.")) {
    return fmt::format("{}: a command tells of iterations only with 'progress'", metric);
  }
  if (!metric.starts_with(kProgramMetrics)) return "";
  const std::string_view number = metric.substr(kProgramMetrics.size());
  if (command.find(number) != nullptr) return "";
  return fmt::format("{}: 'workload.command.metrics' has no '{}'{}", metric, number,
                     didYouMean(number, command.metricNames()));
}

bool showsShim(std::string_view text) {
  return std::ranges::any_of(kSignsOfShim, [&](std::string_view sign) {
    return text.find(sign) != std::string_view::npos;
  });
}

bool anyShowsShim(const std::map<std::string, std::string>& environment) {
  return std::ranges::any_of(environment, [](const auto& variable) {
    return showsShim(variable.first) || showsShim(variable.second);
  });
}

bool mayHaveShim(const Scenario& scenario) {
  const command::Command& command = scenario.workload.command;
  return std::ranges::any_of(command.run, showsShim) || anyShowsShim(command.environment) ||
         std::ranges::any_of(scenario.strategies, [](const Strategy& strategy) {
           return anyShowsShim(strategy.environment);
         });
}

Placement placementOfPrograms(const Scenario& scenario) {
  const command::Command& command = scenario.workload.command;
  return {.perNode = command.perNode, .nodes = command.nodes};
}

Duration longestProgram(const Scenario& scenario) {
  return scenario.workload.command.timeLimit.value_or(scenario.limits.deadline);
}

std::string programInWords(const Workload& workload) {
  const command::Command& command = workload.command;
  return fmt::format("{} on {} nodes", command.run.empty() ? "" : command.run.front(),
                     command.nodes.size());
}

/// A text that YAML takes for one, whatever is in it.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Traffic over RDMA between the first two nodes, for so many seconds. A server whose client is
/// gone waits for ever, and is ended.
std::string rdmaProgram(int seconds) {
  constexpr int kPatienceS = 10;
  return fmt::format(
      "      test=\"timeout {} ib_write_bw -d rxe0 -x 1 -F -s 16384 -D {}\"\n"
      "      case {{node}} in\n"
      "        0) $test > server.txt 2>&1 &\n"
      "           until ss -ltnH | grep -q :18515; do sleep 0.1; done\n"
      "           touch listening\n"
      "           wait $! ;;\n"
      "        1) until [ -e ../rank0/listening ]; do sleep 0.1; done\n"
      "           $test {{address_0}} ;;\n"
      "      esac\n",
      seconds + kPatienceS, seconds);
}

std::string starterOfPrograms(const WorkloadStarter& starter) {
  std::string text =
      "  command:\n"
      "    # Runs on every node. {rank}, {node}, {ranks}, {output} and others are replaced:\n"
      "    # docs/command.md has the list.\n";
  if (!starter.program.empty()) {
    text += fmt::format("    run: [sh, -c, {}]\n", quoted(starter.program));
  } else if (starter.inGuests) {
    text += "    run:\n    - sh\n    - -c\n    - |\n" + rdmaProgram(starter.seconds) +
            "    workdir: \"{output}\"\n";
  } else {
    text += fmt::format("    run: [sh, -c, {}]\n",
                        quoted(fmt::format("sleep {}; echo done", starter.seconds)));
  }
  if (starter.needsShim) {
    text +=
        "    # What strikes its queue pairs. NCCL takes NCCL_IBVERBS_LIB instead, MSCCL++ "
        "MSCCLPP_IBV_SO.\n"
        "    env: {LD_PRELOAD: \"{verbs_shim}\"}\n";
  }
  return text +
         "    time_limit: 60s\n"
         "    # A number that it prints can be judged, as <strategy>.metrics.speed:\n"
         "    # metrics: {speed: {regex: 'speed: ([0-9.]+)', unit: GB/s}}\n\n";
}

}  // namespace

extern const WorkloadKind kCommandWorkload;
constinit const WorkloadKind kCommandWorkload{
    .name = "command",
    .summary =
        "Any program (torchrun, nccl-tests, iperf3), on the nodes under the faults: how it "
        "ends, how fast it is, and the numbers that it tells. Its data are not checked.",
    .brief = "programs that are not ours",
    .fields = commandFields,
    .keys = kCommandKeys,
    .runsRanks = false,
    .read = readPrograms,
    .write = commandJson,
    .check = checkCommand,
    .whyUntold = whyNotTold,
    .mayHaveShim = mayHaveShim,
    .placement = placementOfPrograms,
    .longest = longestProgram,
    .inWords = programInWords,
    .starter = starterOfPrograms,
};

}  // namespace faultline::scenario
