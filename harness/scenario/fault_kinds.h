#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

/// Every kind of fault that a scenario names, wherever it names it.
namespace faultline::scenario {

/// Calls `visit(kind, parameters, path)` with each kind that is known: of `faults`, of `sequences`
/// and of `fault_processes`.
template <typename Visit>
void forEachFaultKind(const Scenario& scenario, const Visit& visit) {
  const auto one = [&](const std::string& kind, const injector::FaultParameters& parameters,
                       const std::string& path) {
    if (!kind.empty()) visit(kind, parameters, path);
  };
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    one(scenario.faults[i].kind, scenario.faults[i].parameters, fmt::format("faults.{}", i));
  }
  for (std::size_t i = 0; i < scenario.sequences.size(); ++i) {
    const std::vector<Fault>& faults = scenario.sequences[i].faults;
    for (std::size_t j = 0; j < faults.size(); ++j) {
      one(faults[j].kind, faults[j].parameters, fmt::format("sequences.{}.faults.{}", i, j));
    }
  }
  for (std::size_t i = 0; i < scenario.processes.size(); ++i) {
    for (const FaultProcess::Kind& kind : scenario.processes[i].kinds) {
      one(kind.name, kind.parameters, fmt::format("fault_processes.{}", i));
    }
  }
}

}  // namespace faultline::scenario
