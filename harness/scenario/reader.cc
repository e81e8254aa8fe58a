#include "harness/scenario/reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <tuple>

#include "harness/scenario/checks.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/interpret.h"
#include "harness/scenario/override.h"
#include "harness/scenario/text_check.h"

namespace faultline::scenario {
namespace {

constexpr std::size_t kLongestMessage = 500;
constexpr std::size_t kMostMistakes = 100;  // a file with more is no scenario: the first ones tell

/// From problems to mistakes: in the order of the file, with the names of their sources.
std::vector<Mistake> render(std::vector<Problem> problems, const std::string& file,
                            std::span<const std::string> overrides) {
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

}  // namespace

std::string Mistake::toString() const {
  if (line == 0) return fmt::format("{}: {}", source, message);
  return fmt::format("{}:{}:{}: {}", source, line, column, message);
}

ReadResult readScenario(std::string_view yaml, const std::string& source,
                        std::span<const std::string> overrides) {
  Document document = parseDocument(yaml, 0);
  const bool duplicates_only = document.root.kind != Node::Kind::kNull || document.problems.empty();
  Findings findings;
  findings.problems() = std::move(document.problems);
  if (duplicates_only) {
    for (std::size_t i = 0; i < overrides.size(); ++i) {
      if (auto problem = applyOverride(document.root, overrides[i], static_cast<int>(i) + 1)) {
        findings.add(problem->where, std::move(problem->message));
      }
    }
    Scenario scenario = interpret(document.root, findings);
    checkScenario(scenario, document.root, findings);
    if (findings.problems().empty()) return {std::move(scenario), {}};
  }
  return {std::nullopt, render(std::move(findings.problems()), source, overrides)};
}

ReadResult readScenarioFile(const std::string& path, std::span<const std::string> overrides) {
  const auto cannot = [&](std::string_view why) {
    return ReadResult{
        std::nullopt,
        {{path, 0, 0, fmt::format("cannot read the scenario: {}; check the path", why)}}};
  };
  // Devices and pipes may never end; a directory opens and then fails obscurely.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return cannot("it is not a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot(std::strerror(errno));
  // One byte more than allowed is enough to see that it is too much.
  std::string text(kMaximumFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return cannot("reading failed");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return readScenario(text, path, overrides);
}

}  // namespace faultline::scenario
