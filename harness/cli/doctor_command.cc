#include "harness/cli/doctor_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "harness/cli/cli.h"
#include "harness/cli/machine_checks.h"
#include "harness/cli/output.h"

namespace faultline::cli {
namespace {

Json toJson(const std::vector<MachineCheck>& checks) {
  Json rows = Json::array();
  for (const MachineCheck& check : checks) {
    rows.push_back({{"group", check.group},
                    {"name", check.name},
                    {"ok", check.ok},
                    {"required", check.required},
                    {"found", check.found},
                    {"needed_for", check.neededFor},
                    {"cost", check.ok ? Json() : Json(check.cost)},
                    {"remedy", check.ok ? Json() : Json(check.remedy)}});
  }
  return {{"quickstart", canRunQuickstart(checks)}, {"checks", std::move(rows)}};
}

void printText(const std::vector<MachineCheck>& checks) {
  constexpr std::size_t kTextColumn = 31;
  constexpr std::size_t kValueColumn = kTextColumn + 12;
  const auto row = [&](std::string_view label, const std::string& text) {
    if (text.empty()) return;
    std::cout << fmt::format("{:{}}{:<12}", "", kTextColumn, label) << wrapText(text, kValueColumn)
              << '\n';
  };
  std::string_view group;
  for (const MachineCheck& check : checks) {
    if (check.group != group) {
      if (!group.empty()) std::cout << '\n';
      group = check.group;
      std::cout << group << '\n';
    }
    const std::string text = check.ok && check.found.empty() ? check.neededFor : check.found;
    const std::string start =
        fmt::format("  {:<8} {:<19} ", check.ok ? "ok" : "missing", check.name);
    std::cout << start << wrapText(text, kTextColumn) << '\n';
    if (check.ok) continue;
    row("needed for", check.neededFor);
    row("without it", check.cost);
    row("do", check.remedy);
  }
}

int diagnose(bool json) {
  const std::vector<MachineCheck> checks = checkMachine();
  const bool can_run = canRunQuickstart(checks);
  if (json) {
    print(toJson(checks));
  } else {
    printText(checks);
    std::cout << (can_run ? "\nThe quick start can run here: faultline run "
                            "scenarios/quickstart.yaml\n"
                          : "\nThe quick start cannot run here: something of the first group is "
                            "missing.\n");
  }
  return can_run ? kExitOk : kExitCannotRun;
}

}  // namespace

CLI::App* addDoctorCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "doctor", "Say what this machine can do, and what each missing thing costs");
  const auto json = std::make_shared<bool>(false);
  addJsonFlag(*command, *json);
  setFooter(*command, "", {"faultline doctor", "faultline doctor --json"},
            "0 whatever it finds, 2 usage mistake");
  command->callback([json, &exit_code] { exit_code = diagnose(*json); });
  return command;
}

}  // namespace faultline::cli
