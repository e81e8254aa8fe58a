#include "harness/cli/doctor_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "harness/cli/cli.h"
#include "harness/cli/cluster_look.h"
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

std::size_t longestWord(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t word = std::min(text.find(' '), text.size());
    longest = std::max(longest, word);
    text.remove_prefix(std::min(text.size(), word + 1));
  }
  return longest;
}

void printText(const std::vector<MachineCheck>& checks) {
  constexpr std::size_t kTextWidth = 100;
  constexpr std::size_t kStateWidth = 8;
  constexpr std::size_t kLabelWidth = 12;
  std::size_t nameWidth = 0;
  for (const MachineCheck& check : checks) nameWidth = std::max(nameWidth, check.name.size());
  const std::size_t textColumn = 2 + kStateWidth + 1 + nameWidth + 1;
  const auto row = [&](std::string_view label, const std::string& text) {
    if (text.empty()) return;
    std::cout << fmt::format("{:{}}{:<{}}", "", textColumn, label, kLabelWidth)
              << wrapText(text, textColumn + kLabelWidth) << '\n';
  };
  std::string_view group;
  for (const MachineCheck& check : checks) {
    if (check.group != group) {
      if (!group.empty()) std::cout << '\n';
      group = check.group;
      std::cout << group << '\n';
    }
    const std::string text = check.ok && check.found.empty() ? check.neededFor : check.found;
    const std::string start = fmt::format("  {:<{}} {:<{}} ", check.ok ? "ok" : "missing",
                                          kStateWidth, check.name, nameWidth);
    if (longestWord(text) + textColumn <= kTextWidth) {
      std::cout << start << wrapText(text, textColumn) << '\n';
    } else {  // a path, which cannot be wrapped, below its name
      std::cout << fmt::format("  {:<{}} {}\n{:{}}", check.ok ? "ok" : "missing", kStateWidth,
                               check.name, "", 2 + kStateWidth + 1)
                << wrapText(text, 2 + kStateWidth + 1) << '\n';
    }
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
  const auto cluster = std::make_shared<std::string>();
  command
      ->add_option("--cluster", *cluster,
                   "File with a section `cluster` of hosts: look at each of them instead, before a "
                   "first run")
      ->type_name("FILE");
  addJsonFlag(*command, *json);
  setFooter(
      *command, "",
      {"faultline doctor", "faultline doctor --json", "faultline doctor --cluster my_hosts.yaml"},
      "0 whatever it finds, 2 usage mistake; with --cluster 3 when a host, or their rails, "
      "cannot be used");
  command->callback([json, cluster, &exit_code] {
    exit_code = cluster->empty() ? diagnose(*json) : lookAtCluster(*cluster, *json);
  });
  return command;
}

}  // namespace faultline::cli
