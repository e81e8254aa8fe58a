#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "reports/headline.h"
#include "reports/markdown.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostResults = 100;
constexpr std::size_t kMostChanges = 60;

/// What needs a reader first.
int urgencyOf(const ScenarioResult& result) {
  if (result.interrupted) return 1;
  switch (result.verdict) {
    case Verdict::kFail:
      return 0;
    case Verdict::kError:
      return 1;
    case Verdict::kInvalid:
      return 2;
    case Verdict::kPass:
      return 3;  // NOLINT: an order
  }
  return 0;
}

std::string resultTable(const std::vector<ScenarioResult>& results) {
  std::vector<const ScenarioResult*> order;
  for (const ScenarioResult& result : results) order.push_back(&result);
  std::ranges::stable_sort(order, {}, [](const auto* result) { return urgencyOf(*result); });
  Rows rows{{"scenario", "verdict", ""}};
  for (const ScenarioResult* result : order) {
    if (rows.size() > kMostResults) break;
    const bool pass = result->verdict == Verdict::kPass && !result->interrupted;
    const std::string word = result->interrupted ? "partial" : nameOf(result->verdict);
    rows.push_back({markdownCode(scenarioName(*result)), pass ? word : "**" + word + "**",
                    markdownText(headline(*result))});
  }
  std::string text = markdownTable(rows, {});
  if (order.size() >= rows.size()) {
    text += fmt::format("\nThe first {} of {}.\n", rows.size() - 1, order.size());
  }
  return text;
}

std::string matrixTable(const ConfusionMatrix& matrix) {
  Rows rows{{"injected", "seen from", "should be"}};
  std::vector<bool> numbers{false, false, false};
  for (const std::string& column : matrix.columns) {
    rows.front().push_back(markdownText(column));
    numbers.push_back(true);
  }
  rows.front().insert(rows.front().end(), {"right %", "pause p50 / p99, ms"});
  numbers.insert(numbers.end(), {true, true});
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    auto& cells = rows.emplace_back();
    cells = {markdownCode(row.fault), row.end, markdownText(row.expected)};
    for (std::size_t i = 0; i < row.counts.size(); ++i) {
      const std::string count = row.counts[i] == 0 ? "" : std::to_string(row.counts[i]);
      const bool wrong = row.judged && !row.right[i] && row.counts[i] > 0;
      cells.push_back(wrong ? "**" + count + "**" : count);
    }
    const auto right = row.rightPercent();
    cells.push_back(right ? fmt::format("{:.1f}", *right) : kDash);
    cells.push_back(markdownText(spreadText(row.pause_ms)));
  }
  return markdownTable(rows, numbers);
}

std::string sideOf(const Comparison::Side& side, const std::string& unit) {
  if (!side.median || std::isnan(*side.median)) return kDash;
  if (std::isinf(*side.median)) return fmt::format("never, n = {}", side.n);
  std::string text = fmt::format("{:.4g} {}", *side.median, markdownText(unit));
  if (side.ci95) text += fmt::format(" ({:.4g} to {:.4g})", side.ci95->lo, side.ci95->hi);
  return text + fmt::format(", n = {}", side.n);
}

std::vector<std::string> changeCells(const Comparison::Row& row, bool several) {
  const std::string points = row.difference_unit == "%" ? "%" : "points";
  std::vector<std::string> cells;
  if (several) cells.push_back(markdownCode(row.scenario));
  cells.insert(cells.end(),
               {markdownCode(row.strategy), markdownCode(row.metric), sideOf(row.base, row.unit),
                sideOf(row.now, row.unit),
                row.difference ? fmt::format("{:+.1f} {}", *row.difference, points) : kDash,
                row.regression ? "**worse**" : nameOf(row.change)});
  if (!row.note.empty()) cells.back() += ": " + markdownText(row.note);
  return cells;
}

bool says(const Comparison::Row& row) {
  return row.change == Change::kBetter || row.change == Change::kWorse;
}

}  // namespace

std::string markdownSummary(const ConfusionMatrix& matrix,
                            const std::vector<ScenarioResult>& results) {
  const auto passed = std::ranges::count_if(
      results, [](const ScenarioResult& result) { return urgencyOf(result) == 3; });
  std::string text = fmt::format("### {} of {} results pass\n\n", passed, results.size());
  text += resultTable(results);
  if (matrix.rows.empty()) return bounded(std::move(text));
  text += fmt::format("\n#### What was injected, and what was found\n\n{} strikes in {} runs.",
                      matrix.strikes, matrix.runs);
  if (matrix.unproved > 0) {
    text += fmt::format(" {} left no evidence and do not count.", matrix.unproved);
  }
  const std::string complaint = matrix.complaint();
  if (!complaint.empty()) text += " **" + markdownText(complaint) + ".**";
  text += "\n\n" + matrixTable(matrix);
  return bounded(std::move(text));
}

std::string markdownSummary(const Comparison& comparison) {
  const Standing standing = comparison.standing();
  std::string text =
      fmt::format("### {}: {}\n\n{} against {}: {}.\n", markdownText(comparison.title),
                  standing == Standing::kAsGood  ? "no regression"
                  : standing == Standing::kWorse ? "worse"
                                                 : "nothing is proved",
                  markdownCode(comparison.now), markdownCode(comparison.base),
                  markdownText(comparison.verdict()));
  const bool several = comparison.scenarios.size() > 1;
  Rows changed{{"strategy", "metric", "base", "new", "change", ""}};
  if (several) changed.front().insert(changed.front().begin(), "scenario");
  Rows others = changed;
  // Regressions first, so that they are never among those that are left out.
  std::vector<const Comparison::Row*> order;
  for (const Comparison::Row& row : comparison.rows) order.push_back(&row);
  std::ranges::stable_sort(order, std::greater(), &Comparison::Row::regression);
  for (const Comparison::Row* row : order) {
    Rows& table = says(*row) ? changed : others;
    if (table.size() <= kMostChanges) table.push_back(changeCells(*row, several));
  }
  std::vector<bool> numbers(changed.front().size(), true);
  std::fill(numbers.begin(), numbers.begin() + (several ? 3 : 2), false);
  numbers.back() = false;
  if (changed.size() > 1) text += "\n" + markdownTable(changed, numbers);
  if (others.size() > 1) {
    text += "\n<details><summary>Rows without a change that can be told</summary>\n\n" +
            markdownTable(others, numbers) + "\n</details>\n";
  }
  Rows settings{{"not the same on both sides", "base", "new"}};
  for (const Comparison::Scenario& scenario : comparison.scenarios) {
    for (const Comparison::Difference& one : scenario.differences) {
      if (settings.size() > kMostChanges) break;
      settings.push_back({markdownCode(one.what), markdownText(one.base), markdownText(one.now)});
    }
  }
  if (settings.size() > 1) text += "\n" + markdownTable(settings, {});
  return bounded(std::move(text));
}

}  // namespace faultline::reports
