#include "harness/cli/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "harness/baseline/strategy_table.h"
#include "harness/cli/model_page.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/vocabulary.h"
#include "injector/fault_table.h"
#include "resilient_ccl/schedule/algorithms.h"

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

template <typename Table>
std::vector<Item> itemsOf(const Table& table) {
  std::vector<Item> items;
  for (const auto& row : table) {
    items.push_back({std::string(row.name), std::string(row.summary), "", ""});
    if constexpr (requires { row.unproven; }) items.back().unproven = row.unproven;
  }
  return items;
}

}  // namespace

std::vector<std::string> categoryNames() {
  return {"scenarios", "faults", "strategies", "workloads", "algorithms", "models", "devices"};
}

std::vector<Category> catalogue() {
  std::vector<Item> algorithms;
  for (const auto& algorithm : schedule::allAlgorithms()) {
    algorithms.push_back({std::string(algorithm.name), std::string(algorithm.description), "", ""});
  }
  std::vector<Item> models, devices;
  for (const model::ModelCard& card : model::models()) {
    models.push_back({card.name, modelInWords(card), "", ""});
  }
  for (const model::DeviceCard& card : model::devices()) {
    devices.push_back({card.name, deviceInWords(card), "", ""});
  }
  return {{"scenarios", "scenario", scenarios()},
          {"faults", "fault", itemsOf(injector::faultKinds())},
          {"strategies", "strategy", itemsOf(baseline::strategies())},
          {"workloads", "workload", itemsOf(scenario::workloadKinds())},
          {"algorithms", "algorithm", std::move(algorithms)},
          {"models", "model", std::move(models)},
          {"devices", "device", std::move(devices)}};
}

}  // namespace faultline::cli
