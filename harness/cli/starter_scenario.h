#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "harness/scenario/workload_kind.h"
#include "injector/fault_kind.h"

/// The scenario that `faultline init` writes. Pure: text in, text out.
namespace faultline::cli {

struct Starter {
  std::string name = "my-scenario";
  std::string workload{scenario::usualWorkloadKind()->name};
  std::string program{};  ///< of workloads that run programs: a line for the shell
  std::vector<std::string> faults{std::string(injector::kUsualFault)};
  std::vector<std::string> gates{};  ///< lines of `expect`; empty: those that suit the rest
  int nodes = 4;  ///< with fewer, one that dies leaves no job that is worth the name
  int rails = 2;
};

/// The kind of workload that runs programs of a user.
std::string_view nameOfPrograms();

/// The name of a scenario in the file: its own, with '-' for what a name may not have.
std::string nameFromFile(const std::string& path);

/// Why what runs cannot meet the fault, whatever else the scenario has, as what follows the kind's
/// name in a sentence; empty when it can.
std::string reasonAgainst(const Starter& starter, const injector::FaultKind& kind);

/// YAML with comments that validates, and runs where the machine can. kInvalidArgument for what
/// cannot be had together, with the reader's own words.
Result<std::string> starterScenario(const Starter& starter);

}  // namespace faultline::cli
