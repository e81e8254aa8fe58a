#include "harness/cli/catalogue.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "harness/baseline/strategy_table.h"
#include "harness/cli/model_page.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/vocabulary.h"
#include "harness/scenario/workload_kind.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/collective.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

/// Scenario files of one folder and the folders in it, at most so many: a folder called scenarios
/// may be anything.
constexpr std::size_t kMostFiles = 1000;

std::vector<fs::path> scenarioFolders() {
  std::vector<fs::path> folders{"scenarios"};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path folder = program.parent_path();
    folders.push_back(folder / "../scenarios");                  // build/faultline
    folders.push_back(folder / "../share/faultline/scenarios");  // bin/faultline
  }
  return folders;
}

std::vector<fs::path> scenarioFiles() {
  std::vector<fs::path> files;
  std::set<fs::path> seen;
  for (const fs::path& folder : scenarioFolders()) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, options, error), end; at != end && !error;
         at.increment(error)) {
      if (files.size() >= kMostFiles) return files;
      const fs::path& path = at->path();
      if (path.extension() != ".yaml" && path.extension() != ".yml") continue;
      std::error_code ignored;
      if (seen.insert(fs::weakly_canonical(path, ignored)).second) {
        files.push_back(path.lexically_normal());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Item> scenarios() {
  std::vector<Item> items;
  for (const fs::path& file : scenarioFiles()) {
    const auto result = scenario::readScenarioFile(file.string());
    if (result.ok()) {
      items.push_back({result.scenario->name, result.scenario->description, file.string(), ""});
    } else {
      items.push_back(
          {file.stem().string(), "has mistakes: see faultline validate", file.string(), ""});
    }
  }
  return items;
}

template <typename Row>
const Row& rowOf(const Row& row) {
  return row;
}
template <typename Row>
const Row& rowOf(const Row* const& row) {
  return *row;
}

template <typename Table>
std::vector<Item> itemsOf(const Table& table) {
  std::vector<Item> items;
  for (const auto& listed : table) {
    const auto& row = rowOf(listed);
    items.push_back({std::string(row.name), std::string(row.summary)});
    if constexpr (requires { row.unproven; }) items.back().unproven = row.unproven;
  }
  return items;
}

std::vector<Item> operationItems() {
  constexpr std::array kMeanings{
      "All ranks end with the reduction of all data.",
      "Rank i ends with the reduction of block i.",
      "Rank i starts with block i, and all end with all blocks.",
      "All ranks end with the root's data.",
      "The root ends with the reduction of all data.",
      "Block i of rank j's output is block j of rank i's input.",
      "Rank i's output is rank i-1's input, as in a shift along a ring."};
  static_assert(kMeanings.size() == schedule::kAllCollectives.size());
  std::vector<Item> items;
  for (std::size_t i = 0; i < kMeanings.size(); ++i) {
    items.push_back(
        {std::string(schedule::collectiveName(schedule::kAllCollectives[i])), kMeanings[i]});
  }
  return items;
}

/// A path that a strategy and the whole result both have stands once.
std::vector<Item> metricItems() {
  std::vector<Item> items;
  for (const scenario::Metric& metric : scenario::metricTable()) {
    const std::string path(metric.path);
    if (std::ranges::find(items, path, &Item::name) != items.end()) continue;
    items.push_back({path, std::string(metric.doc)});
  }
  return items;
}

std::vector<Item> algorithmItems() {
  std::vector<Item> items;
  for (const auto& algorithm : schedule::allAlgorithms()) {
    items.push_back({std::string(algorithm.name), std::string(algorithm.description)});
  }
  return items;
}

template <typename Cards>
std::vector<Item> cardItems(const Cards& all, const auto& words) {
  std::vector<Item> items;
  for (const auto& card : all) items.push_back({card.name, words(card)});
  return items;
}

struct Row {
  std::string_view name;
  std::string_view singular;
  std::vector<Item> (*items)();
};
constexpr std::array kRows{
    Row{"scenarios", "scenario", scenarios},
    Row{"faults", "fault", [] { return itemsOf(injector::faultKinds()); }},
    Row{"strategies", "strategy", [] { return itemsOf(baseline::strategies()); }},
    Row{"workloads", "workload", [] { return itemsOf(scenario::workloadKinds()); }},
    Row{"clusters", "cluster", [] { return itemsOf(scenario::clusterKinds()); }},
    Row{"operations", "operation", operationItems},
    Row{"algorithms", "algorithm", algorithmItems},
    Row{"metrics", "metric", metricItems},
    Row{"models", "model", [] { return cardItems(model::models(), modelInWords); }},
    Row{"devices", "device", [] { return cardItems(model::devices(), deviceInWords); }}};

}  // namespace

std::vector<std::string> categoryNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

std::vector<Category> catalogue() {
  std::vector<Category> all;
  for (const Row& row : kRows) all.push_back({row.name, row.singular, row.items()});
  return all;
}

}  // namespace faultline::cli
