#include "harness/cli/cluster_look.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "base/version.h"
#include "harness/cli/cli.h"
#include "harness/control/interrupt.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/reader.h"
#include "harness/site/kind.h"

namespace faultline::cli {
namespace {

constexpr std::size_t kLookColumns = 6;
using LookRow = std::array<std::string, kLookColumns>;

std::string clockOf(const site::NodeLook& node) {
  if (!node.clockAhead) return "-";
  return fmt::format("{}{} +/- {}", *node.clockAhead < Duration::zero() ? "" : "+",
                     approximately(*node.clockAhead), approximately(node.clockError));
}

LookRow lookRowOf(const site::NodeLook& node) {
  if (!node.usable.ok()) return {node.name, "no", "", "", "", ""};
  return {node.name,
          "ok",
          fmt::format("{}, {} cores, {}", node.hostname, node.cores, node.kernel),
          clockOf(node),
          node.management,
          fmt::format("{}", fmt::join(node.rails, ", "))};
}

Bytes largestAgent(const site::ClusterLook& look) {
  Bytes most = 0;
  for (const site::NodeLook& node : look.nodes) most = std::max(most, node.agentMemory);
  return most;
}

}  // namespace

bool isUsable(const site::ClusterLook& look) {
  return look.rails.ok() && !look.nodes.empty() &&
         std::ranges::all_of(look.nodes, [](const auto& node) { return node.usable.ok(); });
}

std::string toText(const site::ClusterLook& look) {
  std::vector<LookRow> rows{
      {"host", "usable", "system", "clock ahead of ours", "management", "rails"}};
  for (const site::NodeLook& node : look.nodes) rows.push_back(lookRowOf(node));
  std::size_t column = 0;
  std::array<std::size_t, kLookColumns> widths{};
  for (const LookRow& row : rows) {
    for (column = 0; column < kLookColumns; ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const LookRow& row : rows) {
    std::string line;
    for (column = 0; column < kLookColumns; ++column) {
      line += fmt::format("{:<{}}", row[column], widths[column] + 2);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  std::size_t usable = 0;
  for (const site::NodeLook& node : look.nodes) {
    usable += node.usable.ok() ? 1 : 0;
    if (!node.usable.ok()) text += fmt::format("\n{}: {}\n", node.name, node.usable.message());
  }
  if (!look.rails.ok()) text += fmt::format("\nrails: {}\n", look.rails.message());
  text += '\n';
  for (const auto& [name, value] : look.words) text += fmt::format("{}: {}\n", name, value);
  text += fmt::format("{} of {} hosts can be used, with faultline {} on each", usable,
                      look.nodes.size(), versionNumber());
  if (usable > 0) text += fmt::format("; an agent takes {}", formatSize(largestAgent(look)));
  return text + '\n';
}

Json toJson(const site::ClusterLook& look) {
  Json nodes = Json::array();
  for (const site::NodeLook& node : look.nodes) {
    Json row{{"name", node.name},
             {"usable", node.usable.ok()},
             {"why_not", node.usable.ok() ? Json() : Json(node.usable.message())}};
    if (node.usable.ok()) {
      row["hostname"] = node.hostname;
      row["kernel"] = node.kernel;
      row["cores"] = node.cores;
      row["clock_ahead_ms"] = node.clockAhead ? Json(toMilliseconds(*node.clockAhead)) : Json();
      row["clock_error_ms"] = node.clockAhead ? Json(toMilliseconds(node.clockError)) : Json();
      row["agent_memory_bytes"] = node.agentMemory;
      row["management"] = node.management;
      row["rails"] = node.rails;
    }
    nodes.push_back(std::move(row));
  }
  return {{"usable", isUsable(look)},
          {"version", versionNumber()},
          {"rails_problem", look.rails.ok() ? Json() : Json(look.rails.message())},
          {"chosen", look.words},
          {"hosts", std::move(nodes)}};
}

int lookAtCluster(const std::string& file, bool json) {
  const auto text = scenario::readClusterFile(file);
  if (!text.ok()) return fail("doctor", text.status().withContext("--cluster"), kExitUsage);
  const scenario::ClusterResult read = scenario::readCluster(*text);
  for (const scenario::Mistake& mistake : read.mistakes) std::cerr << mistake.toString() << '\n';
  if (!read.cluster) return kExitUsage;
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail("doctor", interrupt.status(), kExitCannotRun);
  const auto cluster = read.cluster->kind->make(scenario::specOf(*read.cluster));
  if (!cluster.ok()) return fail("doctor", cluster.status(), kExitUsage);
  const auto look = (*cluster)->look([&] { return interrupt->pending(); });
  if (interrupt->pending()) return kExitInterrupted;
  if (!look.ok()) {
    const bool never = look.status().code() == Code::kUnsupported;
    return fail("doctor", look.status().withContext("--cluster " + file),
                never ? kExitUsage : kExitCannotRun);
  }
  if (json) {
    print(toJson(*look));
  } else {
    printPlain(toText(*look));
  }
  return isUsable(*look) ? kExitOk : kExitCannotRun;
}

}  // namespace faultline::cli
