#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "reports/comparison.h"

namespace faultline::reports {
namespace {

/// How many of a side's results ended so.
std::size_t countOf(const std::vector<std::string>& verdicts, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(verdicts, nameOf(verdict)));
}

/// Most of its results were good: what one bad night among many was is no standard.
bool passed(const std::vector<std::string>& verdicts) {
  return 2 * countOf(verdicts, Verdict::kPass) > verdicts.size();
}

/// `names` in one line, after how many there are: "2 vanished (a, b)".
std::string listed(const std::vector<std::string>& names, const char* what) {
  if (names.empty()) return "";
  return fmt::format(", {} {} ({})", names.size(), what, fmt::join(names, ", "));
}

}  // namespace

const char* nameOf(Change change) {
  switch (change) {
    case Change::kBetter:
      return "better";
    case Change::kWorse:
      return "worse";
    case Change::kNotDistinguishable:
      return "not distinguishable";
    case Change::kTooFew:
      return "too few values";
    case Change::kTooFewNights:
      return "too few nights";
    case Change::kVoid:
      return "void";
    case Change::kMissingInBase:
      return "missing in BASE";
    case Change::kMissingInNew:
      return "missing in NEW";
  }
  return "unknown";
}

int Comparison::count(Change change) const {
  return static_cast<int>(std::ranges::count(rows, change, &Row::change));
}

int Comparison::regressions() const {
  return static_cast<int>(std::ranges::count(rows, true, &Row::regression));
}

int Comparison::judged() const {
  return count(Change::kBetter) + count(Change::kWorse) + count(Change::kNotDistinguishable);
}

std::vector<std::string> Comparison::vanished() const {
  std::vector<std::string> names;
  for (const Scenario& scenario : scenarios) {
    if (!scenario.base_verdicts.empty() && scenario.new_verdicts.empty()) {
      names.push_back(scenario.name);
      continue;
    }
    std::vector<std::string> strategies;
    for (const Row& row : rows) {
      if (row.scenario != scenario.name || std::ranges::count(strategies, row.strategy) > 0) {
        continue;
      }
      strategies.push_back(row.strategy);
      const auto valuesOf = [&](Side Row::*side) {
        return std::ranges::any_of(rows, [&](const Row& one) {
          return one.scenario == row.scenario && one.strategy == row.strategy && (one.*side).n > 0;
        });
      };
      if (valuesOf(&Row::base) && !valuesOf(&Row::now)) {
        names.push_back(scenario.name + ": " + row.strategy);
      }
    }
  }
  return names;
}

std::vector<std::string> Comparison::failsNow() const {
  std::vector<std::string> names;
  for (const Scenario& scenario : scenarios) {
    const bool fails = countOf(scenario.new_verdicts, Verdict::kFail) +
                           countOf(scenario.new_verdicts, Verdict::kError) >
                       0;
    if (passed(scenario.base_verdicts) && fails) names.push_back(scenario.name);
  }
  return names;
}

std::vector<std::string> Comparison::invalidNow() const {
  std::vector<std::string> names;
  for (const Scenario& scenario : scenarios) {
    if (passed(scenario.base_verdicts) && countOf(scenario.new_verdicts, Verdict::kInvalid) > 0) {
      names.push_back(scenario.name);
    }
  }
  return names;
}

Standing Comparison::standing() const {
  if (regressions() > 0 || !failsNow().empty() || (!allow_missing && !vanished().empty())) {
    return Standing::kWorse;
  }
  return judged() == 0 || !invalidNow().empty() ? Standing::kUnproven : Standing::kAsGood;
}

std::string Comparison::verdict() const {
  if (rows.empty()) return "nothing to compare";
  std::string text = fmt::format("{} regression{} beyond {:.4g} %", regressions(),
                                 regressions() == 1 ? "" : "s", tolerance_pct);
  for (const Change change :
       {Change::kBetter, Change::kWorse, Change::kNotDistinguishable, Change::kTooFew,
        Change::kTooFewNights, Change::kVoid, Change::kMissingInBase, Change::kMissingInNew}) {
    const int rows_of_it = count(change) - (change == Change::kWorse ? regressions() : 0);
    if (rows_of_it == 0) continue;
    text += fmt::format(", {} {}{}", rows_of_it, nameOf(change),
                        change == Change::kWorse ? " within it" : "");
  }
  text += listed(vanished(), "vanished") + listed(failsNow(), "passed and fails now") +
          listed(invalidNow(), "passed and is invalid now");
  if (judged() == 0) text += ": no row could be compared, which proves nothing";
  return text;
}

}  // namespace faultline::reports
