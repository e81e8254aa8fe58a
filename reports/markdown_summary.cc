#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reports/after_fault_text.h"
#include "reports/headline.h"
#include "reports/markdown.h"
#include "reports/renderer.h"
#include "reports/swept_calls.h"
#include "reports/tally.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr std::size_t kMostLines = 60;  // of a table: with long texts still below the limit
constexpr std::size_t kMostReasons = 10;

using Rows = std::vector<std::vector<std::string>>;

std::string verdictWord(const ScenarioResult& result) {
  std::string word = nameOf(result.verdict);
  std::ranges::transform(word, word.begin(),
                         [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  return word;
}

std::string milliseconds(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g} ms", *value) : kDash;
}

std::string overheadCell(const Summary& row) {
  if (row.fault_cost) return markdownText(faultCostText(*row.fault_cost));
  if (!row.overhead_pct) return kDash;
  std::string text = fmt::format("{:+.1f} %", row.overhead_pct->median);
  if (const auto& ci = row.overhead_pct->ci95) {
    text += fmt::format(" ({:.1f} to {:.1f})", ci->lo, ci->hi);
  }
  if (row.overhead_pct->distinguishable == false) text += ", noise";
  return text;
}

/// Speed in the second after the last fault, and when it was back.
std::string afterFaultCell(const Summary& row) {
  if (!row.after_pct) return kDash;
  std::string text = noneWentOn(row) ? "" : fmt::format("{:.1f} %", row.after_pct->median);
  if (const auto& back = row.back_to_95_pct_ms) {
    const auto add = [&](const std::string& words) {
      if (!words.empty()) text += (text.empty() ? "" : ", ") + words;
    };
    if (back->median) add(fmt::format("back after {:.0f} ms", *back->median));
    add(notBackWords(*back));
  }
  return text;
}

std::string strategyTable(const ScenarioResult& result, bool sweep) {
  Rows rows{{"strategy", "runs"}};
  std::vector<bool> numbers{false, false};
  const auto add = [&](const char* title) {
    rows.front().emplace_back(title);
    numbers.push_back(true);
  };
  if (!sweep) add("overhead"), add("best possible");
  add("pause p50"), add("longest"), add("restarts");
  const bool after_faults = std::ranges::any_of(
      result.summary, [](const Summary& row) { return row.after_pct.has_value(); });
  if (after_faults) add("second after the fault");
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    const auto found = std::ranges::find(result.summary, tally.strategy, &Summary::strategy);
    const Summary row = found == result.summary.end() ? Summary{} : *found;
    const bool modelled = row.origin == Origin::kModelled;
    auto& cells = rows.emplace_back();
    cells = {markdownCode(tally.strategy) + (modelled ? " (modelled)" : ""), statusWords(tally)};
    if (!sweep) {
      cells.push_back(overheadCell(row));
      cells.push_back(row.bound_pct ? fmt::format("{:+.1f} %", *row.bound_pct) : kDash);
    }
    const Percentiles pause = row.failover_pause_ms.value_or(Percentiles{});
    cells.push_back(milliseconds(pause.p50));
    cells.push_back(milliseconds(pause.max));
    cells.push_back(std::to_string(tally.restarts));
    if (after_faults) cells.push_back(afterFaultCell(row));
  }
  return markdownTable(rows, numbers);
}

std::string sizeText(std::int64_t bytes) {
  constexpr int kStep = 10;  // bits
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes != 0 && bytes % (1 << kStep) == 0) {
    bytes >>= kStep;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

/// A row for each call, a column for each strategy: GB/s, and what that is of fault_free's.
std::string callTable(const ScenarioResult& result, const std::vector<SweptCall>& calls) {
  std::vector<std::string> strategies;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    const bool calling = std::ranges::any_of(calls, [&](const SweptCall& call) {
      return std::ranges::count(call.strategies, tally.strategy, &StrategyCalls::strategy) > 0;
    });
    if (calling) strategies.push_back(tally.strategy);
  }
  Rows rows{{"busbw, GB/s", "size"}};
  std::vector<bool> numbers{false, true};
  for (const std::string& strategy : strategies) {
    rows.front().push_back(markdownCode(strategy));
    numbers.push_back(true);
  }
  for (const SweptCall& call : calls) {
    if (rows.size() > kMostLines) break;
    auto& cells = rows.emplace_back();
    std::string how = call.dtype;
    if (!call.op.empty()) how += ", " + call.op;
    if (call.in_place) how += ", in place";
    cells = {markdownCode(call.operation) + " " + markdownText(how), sizeText(call.size_bytes)};
    for (const std::string& strategy : strategies) {
      const auto of = std::ranges::find(call.strategies, strategy, &StrategyCalls::strategy);
      std::string cell = kDash;
      if (of != call.strategies.end() && of->busbw) {
        cell = fmt::format("{:.3g}", *of->busbw);
        if (of->kept) cell += fmt::format(" ({:.0f} %)", *of->kept * 100);
        if (of->untouched > 0) cell += ", struck calls";
      }
      cells.push_back(std::move(cell));
    }
  }
  std::string text = markdownTable(rows, numbers);
  if (calls.size() >= rows.size()) {
    text += fmt::format("\nThe first {} of {}; results.csv has them all.\n", rows.size() - 1,
                        calls.size());
  }
  return text;
}

int urgency(const Expectation& line) { return line.is_void ? 1 : line.pass ? 2 : 0; }

/// What does not hold first: it is what somebody looks for.
std::string expectationTable(const ScenarioResult& result) {
  if (result.expectations.empty()) return "";
  std::vector<const Expectation*> lines;
  for (const Expectation& line : result.expectations) lines.push_back(&line);
  std::ranges::stable_sort(lines, {}, [](const Expectation* line) { return urgency(*line); });
  Rows rows{{"expectation", "found", ""}};
  for (const Expectation* line : lines) {
    if (rows.size() > kMostLines) break;
    std::string outcome = line->is_void ? "**void**" : line->pass ? "holds" : "**fails**";
    if (!line->pass && !line->message.empty()) outcome += ": " + markdownText(line->message);
    rows.push_back({markdownCode(line->text), markdownText(valueText(line->value)), outcome});
  }
  std::string text = "\n" + markdownTable(rows, {false, true, false});
  if (lines.size() >= rows.size()) {
    text += fmt::format("\nThe first {} of {}.\n", rows.size() - 1, lines.size());
  }
  return text;
}

std::string remarks(const ScenarioResult& result) {
  std::vector<std::string> notes = result.notes;
  if (result.noise) notes.push_back(noiseText(*result.noise));
  if (result.drift) notes.push_back(driftText(*result.drift));
  std::string text;
  for (std::size_t i = 0; i < std::min(notes.size(), kMostReasons); ++i) {
    text += "- " + markdownText(notes[i]) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

class MarkdownRenderer final : public Renderer {
 public:
  const char* name() const override { return "markdown"; }
  const char* fileName() const override { return "summary.md"; }
  std::string text(const ScenarioResult& result) const override { return markdownSummary(result); }
};

}  // namespace

std::string markdownSummary(const ScenarioResult& result) {
  const VerdictText verdict = explainVerdict(result);
  const std::vector<SweptCall> calls = sweptCalls(result);
  std::string text =
      fmt::format("### {}: {}\n\n**{}**\n", verdictWord(result), markdownText(scenarioName(result)),
                  markdownText(headline(result)));
  const std::string more = besideHeadline(verdict, result);
  if (!more.empty()) text += fmt::format("\n{}.\n", markdownText(more));
  if (result.verdict != Verdict::kPass || result.interrupted) {
    text += "\n";
    for (std::size_t i = 0; i < std::min(verdict.reasons.size(), kMostReasons); ++i) {
      text += "- " + markdownText(verdict.reasons[i]) + "\n";
    }
  }
  if (!calls.empty()) text += "\n" + callTable(result, calls);
  if (!result.runs.empty())
    text += "\n" + strategyTable(result, calls.size() > 1 && !metSomeCalls(result));
  text += expectationTable(result);
  text += remarks(result);
  text += fmt::format(
      "\nSeed {}, {}. All of it: `report.html` for people, `result.json` for programs.\n",
      result.seed, markdownText(result.started_at));
  return bounded(std::move(text));
}

std::unique_ptr<Renderer> makeMarkdownRenderer() { return std::make_unique<MarkdownRenderer>(); }

}  // namespace faultline::reports
