#include "harness/scenario/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/input_file.h"
#include "base/printable.h"
#include "base/text.h"
#include "harness/scenario/checks.h"
#include "harness/scenario/document.h"
#include "harness/scenario/fault_command_checks.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/interpret.h"
#include "harness/scenario/override.h"

namespace faultline::scenario {
namespace {

constexpr std::size_t kLongestMessage = 500;
constexpr std::size_t kMostSiblings = 1000;
constexpr std::size_t kMostMistakes = 100;  // a file with more is no scenario: the first ones tell

/// From problems to mistakes: in the order of the file, with the names of their sources.
std::vector<Mistake> render(std::vector<Problem> problems, const std::string& file,
                            std::span<const std::string> overrides, const std::string& cluster) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.where.source, a.where.line, a.where.column) <
           std::tie(b.where.source, b.where.line, b.where.column);
  });
  std::vector<Mistake> mistakes;
  for (Problem& problem : problems) {
    const auto source = static_cast<std::size_t>(problem.where.source);
    // yaml-cpp, too, quotes what it has read.
    problem.message = oneLine(problem.message, kLongestMessage);
    if (source == 0) {
      mistakes.push_back(
          {file, problem.where.line, problem.where.column, std::move(problem.message)});
    } else if (source > overrides.size()) {
      mistakes.push_back(
          {cluster, problem.where.line, problem.where.column, std::move(problem.message)});
    } else {
      mistakes.push_back({fmt::format("{}: --set {}", file, shortened(overrides[source - 1])), 0, 0,
                          std::move(problem.message)});
    }
    if (mistakes.size() == kMostMistakes && problems.size() > kMostMistakes) {
      mistakes.push_back(
          {file, 0, 0, fmt::format("and {} more mistakes", problems.size() - kMostMistakes)});
      break;
    }
  }
  return mistakes;
}

/// " (did you mean 'hang.yaml'?)" of the scenarios beside a file that is not there, or "".
std::string siblingMeant(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator entry(folder, ignored), end;
       !ignored && entry != end && names.size() < kMostSiblings; entry.increment(ignored)) {
    const std::filesystem::path& file = entry->path();
    if (file.extension() != ".yaml" && file.extension() != ".yml") continue;
    names.push_back(file.filename().string());
  }
  std::ranges::sort(names);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view closest = closestWord(path.filename().string(), known);
  if (closest.empty()) return "";
  return fmt::format(" (did you mean '{}'?)", (path.parent_path() / closest).string());
}

/// Puts the section of the other file into the place of the scenario's own.
void replaceCluster(Node& root, std::string_view text, int source, Findings& findings) {
  Document document = parseDocument(text, source);
  for (Problem& problem : document.problems) findings.problems().push_back(std::move(problem));
  if (!document.problems.empty() || root.kind != Node::Kind::kMap) return;
  constexpr std::string_view kCluster = "cluster";
  Node* const section = document.root.find(kCluster);
  if (section == nullptr || document.root.entries.size() != 1) {
    findings.add({source, 1, 1}, "a file for --cluster has the key 'cluster', and no other");
    return;
  }
  if (Node* const own = root.find(kCluster)) {
    *own = std::move(*section);
  } else {
    root.entries.push_back(std::move(document.root.entries.front()));
  }
}

}  // namespace

std::string Mistake::toString() const {
  if (line == 0) return printableMessage(fmt::format("{}: {}", source, message));
  return printableMessage(fmt::format("{}:{}:{}: {}", source, line, column, message));
}

ReadResult readScenario(std::string_view yaml, const std::string& source,
                        std::span<const std::string> overrides, RunsOn machine,
                        const ClusterFile& cluster) {
  Document document = parseDocument(yaml, 0);
  const bool duplicates_only = document.root.kind != Node::Kind::kNull || document.problems.empty();
  Findings findings;
  findings.problems() = std::move(document.problems);
  if (duplicates_only) {
    if (!cluster.name.empty()) {
      replaceCluster(document.root, cluster.text, static_cast<int>(overrides.size()) + 1, findings);
    }
    for (std::size_t i = 0; i < overrides.size(); ++i) {
      if (auto problem = applyOverride(document.root, overrides[i], static_cast<int>(i) + 1)) {
        findings.add(problem->where, std::move(problem->message));
      }
    }
    const std::string folder = std::filesystem::path(source).parent_path().string();
    Scenario scenario = interpret(document.root, folder, findings);
    checkScenario(scenario, document.root, findings);
    if (machine == RunsOn::kThisMachine) checkFaultCommands(scenario, document.root, findings);
    if (findings.problems().empty()) return {std::move(scenario), {}};
  }
  return {std::nullopt, render(std::move(findings.problems()), source, overrides, cluster.name)};
}

ClusterResult readCluster(const ClusterFile& file) {
  constexpr int kSource = 1;
  Node root = parseDocument("version: 1", 0).root;
  Findings findings;
  replaceCluster(root, file.text, kSource, findings);
  Scenario scenario = interpret(root, "", findings);
  checkScenario(scenario, root, findings);
  // All else is missing, and nobody has asked for it.
  std::erase_if(findings.problems(),
                [](const Problem& problem) { return problem.where.source != kSource; });
  if (findings.problems().empty()) return {std::move(scenario.cluster), {}};
  return {std::nullopt, render(std::move(findings.problems()), "", {}, file.name)};
}

Result<ClusterFile> readClusterFile(const std::string& path) {
  for (const site::Kind* const kind : site::kinds()) {
    if (kind->section == nullptr) continue;
    ASSIGN_OR_RETURN(std::string text, kind->section(path));
    if (!text.empty()) return ClusterFile{"--cluster " + path, std::move(text)};
  }
  ASSIGN_OR_RETURN(std::string text,
                   readInput(path, {.what = "cluster file",
                                    .attempt = "cannot read the cluster file " + path,
                                    .mostBytes = kMaximumFileBytes,
                                    .ownPipes = true}));
  return ClusterFile{path, std::move(text)};
}

ReadResult readScenarioFile(const std::string& path, std::span<const std::string> overrides,
                            RunsOn machine, const ClusterFile& cluster) {
  const auto text = readInput(path, {.what = "scenario",
                                     .attempt = "cannot read the scenario",
                                     .mostBytes = kMaximumFileBytes,
                                     .ownPipes = true});
  if (!text.ok()) {
    const bool missing = text.status().code() == Code::kNotFound;
    return {std::nullopt,
            {{path, 0, 0, text.status().message() + (missing ? siblingMeant(path) : "")}}};
  }
  return readScenario(*text, path, overrides, machine, cluster);
}

}  // namespace faultline::scenario
