#include "harness/scenario/fault_command_checks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/executable.h"
#include "harness/scenario/fault_kinds.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {

void checkFaultCommands(const Scenario& scenario, const Node& root, Findings& findings) {
  const char* const path_variable = std::getenv("PATH");
  const std::string folders = path_variable == nullptr ? "" : path_variable;
  forEachFaultKind(scenario,
                   [&](const std::string& name, const injector::FaultParameters& parameters,
                       const std::string& path) {
                     const injector::FaultKind* const kind = injector::findFaultKind(name);
                     if (kind == nullptr || !findings.usable({path})) return;
                     for (const ParameterSpec& spec : kind->parameters) {
                       const std::string place = fmt::format("{}.{}", path, spec.name);
                       if (spec.type != ParameterType::kCommand || !parameters.has(spec.name))
                         continue;
                       const auto& line = parameters.get<std::string>(spec.name);
                       const auto words = splitCommand(line);
                       if (line == spec.defaultText || !words.ok() || !findings.usable({place}))
                         continue;
                       const auto program = findExecutable(words->front(), "", folders);
                       if (program.ok()) continue;
                       findings.add(locate(root, place),
                                    fmt::format("{}: {}", spec.name, program.status().message()));
                     }
                   });
}

}  // namespace faultline::scenario
