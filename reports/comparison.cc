#include "reports/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <ranges>

#include "base/atomic_file.h"
#include "base/text.h"
#include "reports/assets.h"
#include "reports/html_text.h"
#include "reports/markdown.h"
#include "reports/page_head.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr const char* kNeverOver = "never";
constexpr const char* kComparisonSchema = "faultline.comparison/1";

constexpr std::size_t kMostDifferences = 12;  // on a terminal; the files have them all

/// Four digits are more than any of these medians is known to.
std::string shortNumber(double value) {
  if (std::isinf(value)) return kNeverOver;
  if (!std::isfinite(value)) return kDash;
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
}

std::string sideText(const Comparison::Side& side) {
  if (!side.median) return kDash;
  const std::string median = shortNumber(*side.median);
  if (!side.ci95) return median;
  return fmt::format("{} [{}, {}]", median, shortNumber(side.ci95->lo), shortNumber(side.ci95->hi));
}

std::string differenceText(const Comparison::Row& row) {
  if (!row.difference) return kDash;
  return fmt::format("{:+.1f} {}", *row.difference, row.difference_unit == "%" ? "%" : "pt");
}

std::string pText(const Comparison::Row& row) {
  constexpr double kSmallest = 0.0001;
  constexpr double kSmall = 0.1;  // below it, what is near a limit must not be rounded onto it
  if (!row.p) return kDash;
  if (*row.p < kSmallest) return fmt::format("<{}", kSmallest);
  return *row.p < kSmall ? fmt::format("{:.2g}", *row.p) : fmt::format("{:.2f}", *row.p);
}

std::string changeText(const Comparison::Row& row) {
  return row.regression ? "WORSE" : nameOf(row.change);
}

/// "13 pass, 1 invalid"; of a single result "pass".
std::string verdictsText(const std::vector<std::string>& verdicts) {
  if (verdicts.empty()) return "no result";
  if (verdicts.size() == 1) return verdicts.front();
  std::map<std::string, int> counts;
  for (const std::string& verdict : verdicts) ++counts[verdict];
  std::string text;
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, verdict);
  }
  return text;
}

std::string valueOrNothing(const std::string& value) {
  return value.empty() ? "(not there)" : value;
}

std::string legend(const Comparison& comparison) {
  return fmt::format(
      "Medians of the runs with their 95 % interval (from 6 runs on), n of BASE/NEW; pt: points. "
      "Better and worse: p < {} (Mann-Whitney, two-sided), from {} runs per side on. WORSE: by "
      "more than the tolerance, {:.4g} % (percentages: {:.4g} points).",
      comparison.significance, comparison.min_values, comparison.tolerance_pct,
      comparison.tolerance_pct);
}

/// Text of a result on one line.
std::string oneLine(const std::string& text) {
  std::string line = cleanText(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return line;
}

std::string textRow(const std::string& metric, const std::string& base, const std::string& now,
                    const std::string& n, const std::string& difference, const std::string& p,
                    const std::string& change) {
  return fmt::format(" {:<15} {:>20} {:>20} {:>5} {:>8} {:>7} {}\n", metric, base, now, n,
                     difference, p, change);
}

std::string textOf(const Comparison::Scenario& scenario) {
  std::string text =
      fmt::format("\n{}: {} -> {}\n", oneLine(scenario.name), verdictsText(scenario.base_verdicts),
                  verdictsText(scenario.new_verdicts));
  const auto& differences = scenario.differences;
  if (!differences.empty()) text += " not the same on both sides:\n";
  for (std::size_t i = 0; i < std::min(differences.size(), kMostDifferences); ++i) {
    text += "  " +
            wrapText(fmt::format("{}: {} -> {}", oneLine(differences[i].what),
                                 oneLine(valueOrNothing(differences[i].base)),
                                 oneLine(valueOrNothing(differences[i].now))),
                     4) +
            "\n";
  }
  if (differences.size() > kMostDifferences) {
    text += fmt::format("  and {} more (--json has them)\n", differences.size() - kMostDifferences);
  }
  return text;
}

Json jsonOf(const Comparison::Side& side) {
  const auto numberOf = [](double value) {
    return std::isinf(value) ? Json(kNeverOver) : Json(value);
  };
  Json ci =
      side.ci95 ? Json::array({numberOf(side.ci95->lo), numberOf(side.ci95->hi)}) : Json(nullptr);
  return {{"n", side.n},
          {"median", side.median ? numberOf(*side.median) : Json(nullptr)},
          {"ci95", std::move(ci)}};
}

Json jsonOf(const Comparison::Row& row) {
  const auto orNull = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json nights = Json::array();
  for (const Comparison::Night& night : row.nights) {
    Json& json = nights.emplace_back(jsonOf(night.side));
    json["started_at"] = night.started_at;
    json["git"] = night.git;
    json["verdict"] = night.verdict;
    json["compared"] = night.compared;
  }
  return {{"scenario", row.scenario},
          {"strategy", row.strategy},
          {"metric", row.metric},
          {"unit", row.unit},
          {"base", jsonOf(row.base)},
          {"new", jsonOf(row.now)},
          {"difference", orNull(row.difference)},
          {"difference_unit", row.difference_unit},
          {"p", orNull(row.p)},
          {"verdict", nameOf(row.change)},
          {"regression", row.regression},
          {"note", row.note},
          {"nights", std::move(nights)}};
}

std::string htmlCell(const std::string& kind, const std::string& text,
                     const std::string& sub = "") {
  const std::string below =
      sub.empty() ? "" : fmt::format("<span class=\"sub\">{}</span>", escapedForHtml(sub));
  return fmt::format("<td class=\"{}\">{}{}</td>", kind, escapedForHtml(text), below);
}

std::string htmlSide(const Comparison::Side& side, const std::string& unit) {
  std::string sub = fmt::format("n = {}", side.n);
  if (side.ci95) {
    sub = fmt::format("95 %: {} to {}, {}", shortNumber(side.ci95->lo), shortNumber(side.ci95->hi),
                      sub);
  }
  if (!side.median) return htmlCell("number", kDash, sub);
  const std::string median = shortNumber(*side.median);
  return htmlCell("number", std::isinf(*side.median) ? median : median + " " + unit, sub);
}

const char* toneOf(const Comparison::Row& row) {
  switch (row.change) {
    case Change::kBetter:
      return "tone-good";
    case Change::kWorse:
      return row.regression ? "tone-bad" : "tone-warn";
    case Change::kNotDistinguishable:
      return "neutral";
    default:
      return "tone-warn";
  }
}

/// A picture of a history: medians with their intervals, those that are compared with in full ink.
std::string htmlNights(const Comparison::Row& row) {
  constexpr double kStep = 11;  // px from night to night
  constexpr double kHeight = 44;
  constexpr double kEdge = 5;
  constexpr std::size_t kMostNights = 40;
  const std::size_t first = row.nights.size() - std::min(row.nights.size(), kMostNights);
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Comparison::Night& night : row.nights) {
    std::vector<double> drawn;
    if (night.side.median) drawn = {*night.side.median};
    if (night.side.ci95) drawn.insert(drawn.end(), {night.side.ci95->lo, night.side.ci95->hi});
    for (const double value : drawn) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  const double span = high > low ? high - low : 1;
  const auto y = [&](double value) {
    if (!std::isfinite(value)) return kEdge;  // never over: above everything
    return kHeight - kEdge - (value - low) / span * (kHeight - 2 * kEdge);
  };
  std::string marks;
  for (std::size_t i = first; i < row.nights.size(); ++i) {
    const Comparison::Night& night = row.nights[i];
    if (!night.side.median) continue;
    const double x = kEdge + kStep * static_cast<double>(i - first);
    const char* const kind = i + 1 == row.nights.size() ? "newest"
                             : night.compared           ? "night"
                                                        : "night old";
    if (const auto& ci = night.side.ci95) {
      marks += fmt::format(R"(<path class="{}" d="M{:.1f} {:.1f}V{:.1f}"/>)", kind, x, y(ci->lo),
                           y(ci->hi));
    }
    marks += fmt::format(
        R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.2"><title>{}: {} {}, n = {}, {}, {}</title></circle>)",
        kind, x, y(*night.side.median), escapedForHtml(night.started_at),
        escapedForHtml(sideText(night.side)), escapedForHtml(row.unit), night.side.n,
        escapedForHtml(night.verdict), escapedForHtml(night.git));
  }
  const double width = 2 * kEdge + kStep * static_cast<double>(row.nights.size() - first - 1);
  return fmt::format(
      R"(<td><svg class="nights" role="img" aria-label="{} nights" width="{:.0f}" height="{:.0f}">{}</svg></td>)",
      row.nights.size() - first, width, kHeight, marks);
}

std::string htmlRow(const Comparison::Row& row, bool with_nights) {
  const std::string state = fmt::format(
      "<td class=\"nowrap\"><span class=\"state {}\">{}</span>{}</td>", toneOf(row),
      escapedForHtml(changeText(row)),
      row.note.empty()
          ? ""
          : fmt::format("<span class=\"sub words\">{}</span>", escapedForHtml(row.note)));
  return "<tr>" + htmlCell("head", row.strategy) + htmlCell("nowrap", row.metric) +
         (!with_nights         ? ""
          : row.nights.empty() ? htmlCell("", kDash)
                               : htmlNights(row)) +
         htmlSide(row.base, row.unit) + htmlSide(row.now, row.unit) +
         htmlCell("number", differenceText(row)) + htmlCell("number", pText(row)) + state +
         "</tr>\n";
}

std::string htmlDifferences(const Comparison::Scenario& scenario) {
  if (scenario.differences.empty()) return "";
  std::string rows;
  for (const Comparison::Difference& one : scenario.differences) {
    rows += "<tr>" + htmlCell("name", one.what) + htmlCell("words", valueOrNothing(one.base)) +
            htmlCell("words", valueOrNothing(one.now)) + "</tr>\n";
  }
  return fmt::format(
      "<details class=\"panel\" open><summary>Not the same on both sides: {}</summary>"
      "<div "
      "class=\"scroll\"><table><thead><tr><th>Setting</th><th>BASE</th><th>NEW</th></tr></thead>"
      "\n<tbody>{}</tbody></table></div></details>\n",
      scenario.differences.size() == 1 ? "1 setting"
                                       : fmt::format("{} settings", scenario.differences.size()),
      rows);
}

std::string htmlOf(const Comparison& comparison, const Comparison::Scenario& scenario) {
  const bool with_nights = std::ranges::any_of(
      comparison.rows, [](const Comparison::Row& row) { return !row.nights.empty(); });
  std::string rows;
  for (const Comparison::Row& row : comparison.rows) {
    if (row.scenario == scenario.name) rows += htmlRow(row, with_nights);
  }
  return fmt::format(
      "<section>\n<h2>{}</h2>\n<p class=\"lead\">Verdict of BASE: {}; of NEW: {}.</p>\n"
      "{}<div class=\"panel scroll\"><table><thead><tr><th>Strategy</th><th>Metric</th>{}"
      "<th class=\"number\">BASE</th><th class=\"number\">NEW</th><th class=\"number\">Difference"
      "</th><th "
      "class=\"number\">p</th><th>Verdict</th></tr></thead>\n<tbody>{}</tbody></table></div>"
      "\n</section>\n",
      escapedForHtml(scenario.name), verdictsText(scenario.base_verdicts),
      verdictsText(scenario.new_verdicts), htmlDifferences(scenario),
      with_nights ? "<th>Nights</th>" : "", rows);
}

/// Colour and word at the top of the page.
std::pair<const char*, const char*> headOf(const Comparison& comparison) {
  if (comparison.regressions() > 0) return {"tone-bad", "REGRESSION"};
  switch (comparison.standing()) {
    case Standing::kWorse:
      return {"tone-bad", comparison.vanished().empty() ? "FAILS NOW" : "MISSING"};
    case Standing::kUnproven:
      return {"tone-warn", "VOID"};
    case Standing::kAsGood:
      break;
  }
  return {"tone-good", "NO REGRESSION"};
}

/// Whether both sides have results of it.
bool isOnBothSides(const Comparison::Scenario& scenario) {
  return !scenario.base_verdicts.empty() && !scenario.new_verdicts.empty();
}

/// Why nothing can be compared; empty: something can.
std::string whyNothingInCommon(const Comparison& comparison) {
  if (std::ranges::any_of(comparison.scenarios, isOnBothSides)) return "";
  std::string base;
  std::string now;
  for (const Comparison::Scenario& scenario : comparison.scenarios) {
    std::string& names = scenario.base_verdicts.empty() ? now : base;
    names += (names.empty() ? "" : ", ") + oneLine(scenario.name);
  }
  return wrapText(fmt::format("They have no scenario in common, so that nothing can be compared: "
                              "BASE has {}, NEW has {}.",
                              base.empty() ? "none" : base, now.empty() ? "none" : now),
                  0) +
         "\n";
}

}  // namespace

std::string comparisonText(const Comparison& comparison) {
  std::string text =
      fmt::format("BASE: {}\nNEW:  {}\n", oneLine(comparison.base), oneLine(comparison.now));
  text += whyNothingInCommon(comparison);
  for (const Comparison::Scenario& scenario : comparison.scenarios) {
    text += textOf(scenario);
    // Rows that all say the same are no news.
    if (!isOnBothSides(scenario)) {
      text += fmt::format("   only in {}: nothing to compare it with\n",
                          scenario.base_verdicts.empty() ? "NEW" : "BASE");
      continue;
    }
    std::string strategy;
    bool first = true;
    for (const Comparison::Row& row : comparison.rows) {
      if (row.scenario != scenario.name) continue;
      if (first) text += textRow("", "BASE", "NEW", "n", "change", "p", "verdict");
      if (first || row.strategy != strategy) text += oneLine(row.strategy) + "\n";
      first = false;
      strategy = row.strategy;
      text += textRow(row.metric, sideText(row.base), sideText(row.now),
                      fmt::format("{}/{}", row.base.n, row.now.n), differenceText(row), pText(row),
                      changeText(row));
      if (!row.note.empty()) text += "   " + wrapText(oneLine(row.note), 3) + "\n";
    }
  }
  return text + "\n" + wrapText(legend(comparison), 0) + "\n" + comparison.verdict() + "\n";
}

Json comparisonJson(const Comparison& comparison) {
  Json scenarios = Json::array();
  for (const Comparison::Scenario& scenario : comparison.scenarios) {
    Json differences = Json::array();
    for (const Comparison::Difference& one : scenario.differences) {
      differences.push_back({{"what", one.what}, {"base", one.base}, {"new", one.now}});
    }
    scenarios.push_back({{"name", scenario.name},
                         {"base_verdicts", scenario.base_verdicts},
                         {"new_verdicts", scenario.new_verdicts},
                         {"differences", std::move(differences)}});
  }
  Json rows = Json::array();
  for (const Comparison::Row& row : comparison.rows) rows.push_back(jsonOf(row));
  return {{"schema", kComparisonSchema},
          {"base", comparison.base},
          {"new", comparison.now},
          {"tolerance_pct", comparison.tolerance_pct},
          {"significance", comparison.significance},
          {"regressions", comparison.regressions()},
          {"judged", comparison.judged()},
          {"vanished", comparison.vanished()},
          {"fails_now", comparison.failsNow()},
          {"invalid_now", comparison.invalidNow()},
          {"verdict", comparison.verdict()},
          {"scenarios", std::move(scenarios)},
          {"rows", std::move(rows)}};
}

std::string comparisonHtml(const Comparison& comparison) {
  std::string sections;
  for (const Comparison::Scenario& scenario : comparison.scenarios) {
    sections += htmlOf(comparison, scenario);
  }
  const std::string head = pageHead(comparison.title + " · Faultline", PageScripts::kInline);
  const std::string title = escapedForHtml(comparison.title);
  const std::string base = escapedForHtml(comparison.base);
  const std::string now = escapedForHtml(comparison.now);
  const std::string verdict = escapedForHtml(comparison.verdict());
  const std::string reading = escapedForHtml(legend(comparison));
  const auto [tone, word] = headOf(comparison);
  return filled(assets::compareTemplate(), {{"head", head},
                                            {"title", title},
                                            {"base", base},
                                            {"new", now},
                                            {"tone", tone},
                                            {"word", word},
                                            {"verdict", verdict},
                                            {"reading", reading},
                                            {"sections", sections},
                                            {"elements", assets::elementsJs()}});
}

Status writeComparison(const Comparison& comparison, const std::string& directory,
                       const std::string& name, Earlier earlier) {
  const auto file = [&](const char* ending) { return fmt::format("{}.{}", name, ending); };
  ASSIGN_OR_RETURN(ClaimedFiles claimed,
                   ClaimedFiles::claim(directory, {file("html"), file("json"), file("md")},
                                       {file("json"), kComparisonSchema}, earlier));
  RETURN_IF_ERROR(writeFileAtomically(fmt::format("{}/{}.html", directory, name),
                                      comparisonHtml(comparison), Sync::kYes, Links::kRefused));
  RETURN_IF_ERROR(writeFileAtomically(fmt::format("{}/{}.md", directory, name),
                                      markdownSummary(comparison), Sync::kYes, Links::kRefused));
  RETURN_IF_ERROR(writeFileAtomically(
      fmt::format("{}/{}.json", directory, name),
      comparisonJson(comparison).dump(kJsonSpaces, ' ', false, Json::error_handler_t::replace) +
          "\n",
      Sync::kYes, Links::kRefused));
  return claimed.finish();
}

}  // namespace faultline::reports
