#include "reports/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/atomic_file.h"
#include "base/text.h"
#include "reports/assets.h"
#include "reports/html_text.h"
#include "reports/markdown.h"
#include "reports/page_head.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr const char* kConfusionSchema = "faultline.confusion/1";

/// One of the times of a row.
struct Times {
  const char* name;
  Percentiles ConfusionMatrix::Row::*of;
};
constexpr std::array kTimes{Times{"detection", &ConfusionMatrix::Row::detection_ms},
                            Times{"fence", &ConfusionMatrix::Row::fence_ms},
                            Times{"redelivery", &ConfusionMatrix::Row::redelivery_ms},
                            Times{"pause", &ConfusionMatrix::Row::pause_ms}};

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : kDash;
}

std::string inShort(const ConfusionMatrix& matrix) {
  std::string text = fmt::format("{} strikes in {} runs of {} results", matrix.strikes, matrix.runs,
                                 matrix.results);
  if (matrix.unproved > 0)
    text += fmt::format("; {} left no evidence and do not count", matrix.unproved);
  return text;
}

constexpr const char* kHowToRead =
    "Rows: what was injected, seen from the node that was struck (own) and from the others (peer). "
    "Columns: what failovers held to be broken, paths with the direction that is dead; "
    "degraded: a rail that lived and was found slow; none: strikes after which this end found "
    "nothing, of a throttle neither end.";

/// Why `n` of the times is not the sum of a row.
constexpr const char* kWhatCounts =
    "n counts failovers of connections that carried data: only these have times. A verdict on an "
    "idle connection, a rail that was found slow, and a strike that this end did not notice are in "
    "the table of verdicts alone.";

Json toJson(const Percentiles& times) {
  const auto orNull = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  };
  return {{"p50", orNull(times.p50)},
          {"p95", orNull(times.p95)},
          {"p99", orNull(times.p99)},
          {"max", orNull(times.max)},
          {"n", times.n}};
}

std::string cell(const std::string& text, const char* kind) {
  return fmt::format("<td class=\"{}\">{}</td>", kind, escapedForHtml(text));
}

/// `name` writes what a row is about.
template <typename Name>
std::string placesText(const ConfusionMatrix& matrix, Name name) {
  constexpr int kColumn = 9;
  std::string rows;
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    if (row.places.total() == 0) continue;
    rows += name(row);
    for (const int count : {row.places.right, row.places.wrong, row.places.unknown}) {
      rows += fmt::format("{:>{}}", count, kColumn);
    }
    rows += fmt::format("{:>{}}\n", percent(row.placedPercent()), kColumn);
  }
  if (rows.empty()) return "";
  const std::string heading = "\ncause and place of each failover";
  return fmt::format("{}\n{:<27}{:>{}}{:>{}}{:>{}}{:>{}}\n", heading, "fault                  end",
                     "right", kColumn, "wrong", kColumn, "no place", kColumn, "right %", kColumn) +
         rows;
}

std::string head(const std::string& text, bool number) {
  return fmt::format("<th{}>{}</th>", number ? " class=\"number\"" : "", escapedForHtml(text));
}

}  // namespace

int ConfusionMatrix::Row::total() const { return std::accumulate(counts.begin(), counts.end(), 0); }

std::optional<double> ConfusionMatrix::Row::rightPercent() const {
  if (!judged || total() == 0) return std::nullopt;
  int found = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) found += right[i] ? counts[i] : 0;
  constexpr double kWhole = 100;
  return kWhole * found / total();
}

std::optional<double> ConfusionMatrix::Row::placedPercent() const {
  if (places.total() == 0) return std::nullopt;
  constexpr double kWhole = 100;
  return kWhole * places.right / places.total();
}

std::string ConfusionMatrix::complaint() const {
  for (const Row& row : rows) {
    if (row.fault == kNoFault && row.total() > 0) {
      return fmt::format("{} failovers and slow rails that no fault explains", row.total());
    }
    if (const auto right = row.rightPercent(); right && *right < kLeastRightPercent) {
      return fmt::format("{} ({}): {:.1f} % found as {}, less than {:.0f}", row.fault, row.end,
                         *right, row.expected, kLeastRightPercent);
    }
  }
  return "";
}

std::string confusionText(const ConfusionMatrix& matrix) {
  static constexpr int kFaultColumns = 22;
  static constexpr int kColumn = 7;
  const auto wide = [](const std::string& column) {
    const bool twoLines = column.find('_') != std::string::npos;
    return twoLines ? kColumn : std::max(kColumn, static_cast<int>(column.size()) + 1);
  };
  const auto fault = [](const ConfusionMatrix::Row& row) {
    const std::string name = row.fault.size() <= kFaultColumns
                                 ? row.fault
                                 : row.fault.substr(0, kFaultColumns - 1) + "~";
    return fmt::format("{:<{}} {:<4}", name, kFaultColumns, row.end);
  };
  std::string text =
      fmt::format("{}; right ones in brackets\n\n{:{}}", inShort(matrix), "", kFaultColumns + 5);
  // "local_nic" in two lines.
  for (const std::string& column : matrix.columns) {
    text += fmt::format("{:>{}}", column.substr(0, column.find('_')), wide(column));
  }
  text += fmt::format("{:>{}}\n{:<{}} {:<4}", "right", kColumn + 1, "fault", kFaultColumns, "end");
  for (const std::string& column : matrix.columns) {
    const std::size_t bar = column.find('_');
    const std::string second = bar == std::string::npos ? "" : column.substr(bar + 1);
    text += fmt::format("{:>{}}", second, wide(column));
  }
  text += fmt::format("{:>{}}\n", "%", kColumn + 1);
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    text += fault(row);
    for (std::size_t i = 0; i < row.counts.size(); ++i) {
      const bool marked = row.judged && row.right[i];
      const std::string count = row.counts[i] == 0 && !marked ? "." : std::to_string(row.counts[i]);
      text +=
          fmt::format("{:>{}}", marked ? "[" + count + "]" : count + " ", wide(matrix.columns[i]));
    }
    text += fmt::format("{:>{}}\n", percent(row.rightPercent()), kColumn + 1);
  }
  constexpr int kTime = 15;
  text += fmt::format("\nms, p50 / p99 (p50 / >max below 300 failovers)\n{:<{}} {:<4}{:>6}",
                      "fault", kFaultColumns, "end", "n");
  for (const Times& times : kTimes) text += fmt::format("{:>{}}", times.name, kTime);
  text += "\n";
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    if (row.pause_ms.n == 0) continue;
    text += fault(row) + fmt::format("{:>6}", row.pause_ms.n);
    for (const Times& times : kTimes)
      text += fmt::format("{:>{}}", spreadText(row.*times.of), kTime);
    text += "\n";
  }
  return text + "\n" + wrapText(kWhatCounts, 0) + "\n" + placesText(matrix, fault);
}

Json confusionJson(const ConfusionMatrix& matrix) {
  Json rows = Json::array();
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    Json counts = Json::object();
    for (std::size_t i = 0; i < row.counts.size(); ++i) counts[matrix.columns[i]] = row.counts[i];
    const auto right = row.rightPercent();
    Json& json = rows.emplace_back(Json{{"fault", row.fault},
                                        {"end", row.end},
                                        {"expected", row.expected},
                                        {"strikes", row.strikes},
                                        {"counts", std::move(counts)},
                                        {"right_pct", right ? Json(*right) : Json(nullptr)}});
    const auto placed = row.placedPercent();
    json["places"] = {{"right", row.places.right},
                      {"wrong", row.places.wrong},
                      {"unknown", row.places.unknown},
                      {"right_pct", placed ? Json(*placed) : Json(nullptr)}};
    for (const Times& times : kTimes) {
      json[fmt::format("{}_ms", times.name)] = toJson(row.*times.of);
    }
  }
  return {{"schema", kConfusionSchema}, {"results", matrix.results},   {"runs", matrix.runs},
          {"strikes", matrix.strikes},  {"unproved", matrix.unproved}, {"columns", matrix.columns},
          {"rows", std::move(rows)}};
}

std::string confusionHtml(const ConfusionMatrix& matrix) {
  std::string verdicts =
      "<tr>" + head("Injected", false) + head("Seen from", false) + head("Should be", false);
  for (const std::string& column : matrix.columns) verdicts += head(column, true);
  verdicts += head("Right %", true) + head("Place too, %", true) + "</tr>\n";
  std::string times = "<tr>" + head("Injected", false) + head("Seen from", false) + head("n", true);
  for (const Times& one : kTimes) times += head(one.name, true);
  times += "</tr>\n";
  for (const ConfusionMatrix::Row& row : matrix.rows) {
    const std::string name = "<tr>" + cell(row.fault, "head") + cell(row.end, "nowrap");
    verdicts += name + cell(row.expected, "nowrap");
    for (std::size_t i = 0; i < row.counts.size(); ++i) {
      const bool empty = row.counts[i] == 0;
      const char* const kind = !row.judged || (empty && !row.right[i]) ? "number"
                               : row.right[i]                          ? "number right"
                                                                       : "number wrong";
      verdicts += cell(empty && !row.right[i] ? "" : std::to_string(row.counts[i]), kind);
    }
    verdicts += cell(percent(row.rightPercent()), "number");
    verdicts += cell(percent(row.placedPercent()), "number") + "</tr>\n";
    if (row.pause_ms.n == 0) continue;
    times += name + cell(std::to_string(row.pause_ms.n), "number");
    for (const Times& one : kTimes) times += cell(spreadText(row.*one.of), "number");
    times += "</tr>\n";
  }
  const std::string page_head = pageHead("Confusion matrix · Faultline", PageScripts::kNone);
  return filled(assets::matrixTemplate(), {{"head", page_head},
                                           {"summary", inShort(matrix)},
                                           {"reading", kHowToRead},
                                           {"counted", kWhatCounts},
                                           {"verdicts", verdicts},
                                           {"times", times}});
}

Status writeConfusion(const ConfusionMatrix& matrix, const std::vector<ScenarioResult>& results,
                      const std::string& directory, Earlier earlier) {
  ASSIGN_OR_RETURN(ClaimedFiles claimed,
                   ClaimedFiles::claim(directory, {"matrix.html", "matrix.json", "summary.md"},
                                       {"matrix.json", kConfusionSchema}, earlier));
  RETURN_IF_ERROR(writeFileAtomically(directory + "/matrix.html", confusionHtml(matrix), Sync::kYes,
                                      Links::kRefused));
  RETURN_IF_ERROR(writeFileAtomically(directory + "/summary.md", markdownSummary(matrix, results),
                                      Sync::kYes, Links::kRefused));
  RETURN_IF_ERROR(writeFileAtomically(directory + "/matrix.json",
                                      confusionJson(matrix).dump(kJsonSpaces) + "\n", Sync::kYes,
                                      Links::kRefused));
  return claimed.finish();
}

}  // namespace faultline::reports
