#include "reports/terminal_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "reports/after_fault_text.h"
#include "reports/bandwidth_table.h"
#include "reports/headline.h"
#include "reports/tally.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr std::size_t kWidth = 100;
constexpr const char* kNothing = "-";

constexpr const char* kRed = "\033[31m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kYellow = "\033[33m";
constexpr const char* kBold = "\033[1m";
constexpr const char* kPlain = "\033[0m";

/// Characters, not bytes: continuation bytes of UTF-8 take no column. (Wide scripts are not known.)
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// One line without control characters, cut to `width` columns with "~" at the end when longer.
std::string fitted(const std::string& text, std::size_t width) {
  std::string clean = cleanText(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  if (columns(clean) <= width) return clean;
  std::size_t taken = 0;
  std::size_t bytes = 0;
  for (; bytes < clean.size(); ++bytes) {
    if ((static_cast<unsigned char>(clean[bytes]) & 0xC0) != 0x80 && ++taken == width) break;
  }
  return clean.substr(0, bytes) + "~";
}

/// A paragraph indented by two columns, broken at blanks; a word that is wider than a line is cut.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kIndent = 2;
  std::istringstream lines(
      wrapText(std::string(kIndent, ' ') + fitted(text, std::string::npos), kIndent));
  std::string result;
  for (std::string line; std::getline(lines, line);) result += fitted(line, kWidth) + "\n";
  return result;
}

struct Column {
  const char* title;
  std::size_t width;
  bool left;
};

// Widths and the two blanks between columns add up to 100.
constexpr std::array<Column, 8> kColumns{{{"strategy", 14, true},
                                          {"runs", 4, false},
                                          {"status", 15, true},
                                          {"overhead % [95% ci]", 20, false},
                                          {"best %", 6, false},
                                          {"pause ms", 11, false},
                                          {"throughput", 10, false},
                                          {"lost", 6, false}}};
using Row = std::array<std::string, kColumns.size()>;

std::string formatRow(const Row& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Column& column = kColumns[i];
    const std::string cell = fitted(row[i], column.width);
    const std::string padding(column.width - columns(cell), ' ');
    if (i > 0) line += "  ";
    line += column.left ? cell + padding : padding + cell;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string number(double value, int digits = 1) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : kNothing;
}

std::string number(const std::optional<double>& value, int digits = 1) {
  return value ? number(*value, digits) : kNothing;
}

constexpr const char* kOverheadOfAServer =
    "overhead: how much longer requests took on average, from arrival to last token";
constexpr const char* kFaultCostMeaning =
    "s of req, min of the job: what one fault costs by a model, so many requests (req) all "
    "together";

/// "1.5 [0.5, 2.5] =", with the unit behind each number.
std::string overheadText(const Overhead& overhead, const char* unit = "", int digits = 1) {
  std::string text = number(overhead.median, digits) + unit;
  if (const auto& ci = overhead.ci95) {
    text += fmt::format(" [{}, {}]{}", number(ci->lo, digits), number(ci->hi, digits), unit);
  }
  if (overhead.distinguishable == false) text += " =";
  return text;
}

std::string overheadText(const Summary& row) {
  if (row.fault_cost) return faultCostText(*row.fault_cost);
  return row.overhead_pct ? overheadText(*row.overhead_pct) : kNothing;
}

/// What communication alone adds, of all rows that know; empty: none does.
std::string exposedText(const ScenarioResult& result) {
  constexpr int kDigits = 2;  // strategies lie within tenths of a percent
  std::string rows;
  for (const Summary& row : result.summary) {
    if (!row.exposed_overhead_pct) continue;
    rows += fmt::format("{}{} {}", rows.empty() ? "" : ", ", cleanText(row.strategy),
                        overheadText(*row.exposed_overhead_pct, "", kDigits));
  }
  if (rows.empty()) return "";
  return wrapped("exposed communication, added % of an iteration [95% ci]: " + rows);
}

/// "after the last fault, ...: hot_repair 98.2 %, back after 120 ms (longest 300 ms)"; empty: no
/// row has a second after it.
std::string afterFaultText(const ScenarioResult& result) {
  std::string rows;
  for (const Summary& row : result.summary) {
    if (!row.after_pct) continue;
    std::vector<std::string> parts;
    if (!noneWentOn(row)) parts.push_back(number(row.after_pct->median) + " %");
    if (const auto& back = row.back_to_95_pct_ms) {
      if (back->median) parts.push_back(fmt::format("back after {} ms", number(*back->median, 0)));
      if (back->max && back->n > 1) {
        parts.back() += fmt::format(" (longest {})", number(*back->max, 0));
      }
      if (back->never > 0) parts.push_back(notBackWords(*back));
    }
    const std::string line = fmt::format("{} {}", cleanText(row.strategy), fmt::join(parts, ", "));
    rows += (rows.empty() ? "" : "; ") + line;
  }
  if (rows.empty()) return "";
  return wrapped(
      "in the second after the last fault, % of fault_free, and when it was back at 95 %: " + rows);
}

std::string pauseText(const Summary& row) {
  if (!row.failover_pause_ms || row.failover_pause_ms->n == 0) return kNothing;
  return number(row.failover_pause_ms->p50) + "/" + number(row.failover_pause_ms->max);
}

std::string nameInTable(const Summary& row) {
  return row.strategy + (row.origin == Origin::kModelled ? "*" : "");
}

Row rowOf(const Summary& row, const StrategyTally& tally) {
  const bool modelled = row.origin == Origin::kModelled;
  return {
      nameInTable(row),
      fmt::format("{}", tally.runs),
      modelled ? "modelled" : statusWords(tally),  // a long name loses its mark
      overheadText(row),
      number(row.bound_pct) + (row.mis_measured ? "!" : ""),
      pauseText(row),
      row.throughput ? number(row.throughput->value, row.throughput->value < 1000 ? 2 : 0)
                     : kNothing,
      tally.restarts > 0 ? fmt::format("{}/{}", tally.restarts, tally.lost_iterations) : kNothing};
}

std::string real(std::int64_t bytes) {
  constexpr double kGiga = 1e9;
  return fmt::format("{:.3g} GB", static_cast<double>(bytes) / kGiga);
}

/// What the job was made of, with what stood still for it in the first fault-free run.
std::string trainingText(const ScenarioResult& result) {
  const TrainingFacts& facts = *result.training;
  std::string text = wrapped(fmt::format(
      "{} on {}: {:.4g} billion parameters ({:.4g} a rank), {} tokens and {:.4g} ms of compute an "
      "iteration; scale {}: all times and bytes are so many times smaller than the model's ({:.4g} "
      "s of compute)",
      facts.model, facts.device, static_cast<double>(facts.parameters) / 1e9,
      static_cast<double>(facts.parameters_per_rank) / 1e9, facts.tokens_per_iteration,
      facts.compute_ms, facts.scale, facts.real_compute_ms / 1e3));
  const auto free = std::ranges::find_if(
      result.runs, [](const Run& run) { return run.arm == Arm::kPlain && !run.exposed.empty(); });
  for (const TrainingPhase& phase : facts.phases) {
    std::string exposed;
    if (free != result.runs.end()) {
      const auto row = std::ranges::find(free->exposed, phase.phase, &ExposedPhase::phase);
      exposed = fmt::format("; {:.1f} % of a fault-free iteration waits for it",
                            row == free->exposed.end() ? 0.0 : row->share_pct);
    }
    text += wrapped(fmt::format("{}: {} {} of {} ranks, {:.3g} MB (really {}) an iteration{}",
                                phase.phase, phase.calls, phase.operation, phase.ranks,
                                static_cast<double>(phase.bytes) / 1e6, real(phase.real_bytes),
                                exposed));
  }
  return text;
}

/// What the programs of a command told, and how they ended: "unprotected: exit codes 0; busbw 5.20
/// (4.90 to 5.31) GB/s".
std::string toldTexts(const ScenarioResult& result) {
  std::string text;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    std::set<int> codes;
    std::map<std::string, std::vector<Quantity>> told;
    for (const Run& run : result.runs) {
      if (run.strategy != tally.strategy) continue;
      for (const ProgramEnd& end : run.processes) codes.insert(end.exit_code);
      for (const auto& [name, value] : run.metrics) told[name].push_back(value);
    }
    if (codes.empty()) continue;
    std::string line = tally.strategy + ": exit codes";
    for (const int code : codes) line += fmt::format(" {}", code);
    for (auto& [name, values] : told) {
      std::ranges::sort(values, {}, &Quantity::value);
      line += fmt::format("; {} {}", name, number(values[values.size() / 2].value, 2));
      if (values.size() > 1) {
        line += fmt::format(" ({} to {})", number(values.front().value, 2),
                            number(values.back().value, 2));
      }
      if (!values.front().unit.empty()) line += " " + values.front().unit;
    }
    text += wrapped(line);
  }
  return text;
}

/// The knee of fault_free, where the row is another one; empty: there is nothing to compare with.
std::string besideFaultFree(const ScenarioResult& result, const Summary& row) {
  const auto free = std::ranges::find(result.summary, kReferenceRow, &Summary::strategy);
  if (free == result.summary.end() || free->rates.empty() || &*free == &row) return "";
  if (!free->knee_qps) return " (fault_free: with no rate)";
  return fmt::format(" (fault_free: from {:.4g}/s on)", *free->knee_qps);
}

/// Requests and latencies of each row and rate: "hot_repair, 4/s: 60 requests, 60 finished; ...".
std::string latencyText(const ScenarioResult& result) {
  std::string text;
  const auto times = [](const Percentiles& all) {
    std::string line = number(all.p50) + "/" + number(all.p95) + "/" + number(all.p99);
    return line + " ms (n " + std::to_string(all.n) + ")";
  };
  for (const Summary& row : result.summary) {
    for (const RateRow& rate : row.rates) {
      std::string line = fmt::format(
          "{}, {:.4g}/s: {} requests, {} finished, {} late, {} lost, {} redone; goodput {:.3g}/s; "
          "p50/p95/p99 of TTFT {}, TPOT {}, whole {}",
          row.strategy, rate.qps, rate.requests, rate.finished, rate.late, rate.lost, rate.redone,
          rate.goodput, times(rate.ttft_ms), times(rate.tpot_ms), times(rate.e2e_ms));
      // TPOT is of those that are longer than one token: never more.
      const Percentiles& fewest = rate.tpot_ms.n > 0 ? rate.tpot_ms : rate.ttft_ms;
      if (const std::string missing = missingPercentiles(fewest); !missing.empty()) {
        line += fmt::format("; too few requests for -: {}", missing);
      }
      if (const std::string burst = burstText(rate); !burst.empty()) line += "; " + burst;
      if (rate.ttft_overhead_pct && rate.tpot_overhead_pct) {
        line += fmt::format("; medians against fault_free (blocks: {}): TTFT {}, TPOT {}",
                            rate.ttft_overhead_pct->n, overheadText(*rate.ttft_overhead_pct, " %"),
                            overheadText(*rate.tpot_overhead_pct, " %"));
      }
      if (rate.ttft_p95_overhead_pct && rate.tpot_p95_overhead_pct) {
        line +=
            fmt::format("; p95: TTFT {}, TPOT {}", overheadText(*rate.ttft_p95_overhead_pct, " %"),
                        overheadText(*rate.tpot_p95_overhead_pct, " %"));
      }
      text += wrapped(line);
    }
    if (row.knee_qps) {
      text += wrapped(
          fmt::format("{}: less than 90 % of the requests are finished in time from {:.4g}/s on{}",
                      row.strategy, *row.knee_qps, besideFaultFree(result, row)));
    }
  }
  return text;
}

std::string table(const ScenarioResult& result) {
  Row titles;
  for (std::size_t i = 0; i < titles.size(); ++i) titles[i] = kColumns[i].title;
  std::string text = formatRow(titles) + std::string(kWidth, '-') + "\n";
  std::string unit;
  std::string fullNames;  // of those that the column is too narrow for
  bool modelled = false;
  bool costs = false;
  bool noise = false;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    const auto row = std::find_if(result.summary.begin(), result.summary.end(),
                                  [&](const Summary& s) { return s.strategy == tally.strategy; });
    const bool summarised = row != result.summary.end();
    Summary unsummarised;
    unsummarised.strategy = tally.strategy;
    text += formatRow(rowOf(summarised ? *row : unsummarised, tally));
    const std::string name = cleanText(nameInTable(summarised ? *row : unsummarised));
    if (const std::string cut = fitted(name, kColumns[0].width); cut != name) {
      fullNames += fmt::format("{}{} is {}", fullNames.empty() ? "" : ", ", cut, name);
    }
    if (summarised && row->throughput) unit = row->throughput->unit;
    if (!summarised) continue;
    modelled = modelled || row->origin == Origin::kModelled;
    costs = costs || row->fault_cost;
    const auto alike = [](const std::optional<Overhead>& overhead) {
      return overhead && overhead->distinguishable == false;
    };
    noise = noise || alike(row->overhead_pct) || alike(row->exposed_overhead_pct);
  }
  std::string legend = "pause: p50/max; lost: restarts/";
  legend += serves(result) ? "requests" : "iterations";
  if (!unit.empty()) legend += "; throughput: " + unit;
  if (noise) legend += "; = not distinguishable from 0";
  if (modelled) legend += "; * modelled, not measured";
  text += fitted(legend, kWidth) + "\n";
  if (serves(result)) text += fitted(kOverheadOfAServer, kWidth) + "\n";
  if (costs) text += fitted(kFaultCostMeaning, kWidth) + "\n";
  text += exposedText(result);
  text += afterFaultText(result);
  if (!fullNames.empty()) text += wrapped(fullNames);
  for (const Summary& row : result.summary) {
    if (row.note.empty()) continue;
    text += wrapped(fmt::format("{}{}: {}", row.mis_measured ? "! " : "", row.strategy, row.note));
  }
  if (result.noise) text += wrapped(noiseText(*result.noise));
  if (result.drift) text += wrapped(driftText(*result.drift));
  for (const std::string& note : result.notes) text += wrapped(note);
  return text + toldTexts(result);
}

const char* colourOf(const ScenarioResult& result) {
  if (result.interrupted) return kYellow;
  switch (result.verdict) {
    case Verdict::kPass:
      return kGreen;
    case Verdict::kInvalid:
      return kYellow;
    case Verdict::kFail:
    case Verdict::kError:
      break;
  }
  return kRed;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

std::span<const std::string_view> terminalColours() {
  static constexpr std::array<std::string_view, 5> kAll{kRed, kGreen, kYellow, kBold, kPlain};
  return kAll;
}

std::string terminalSummary(const ScenarioResult& result, const TerminalStyle& style) {
  const auto paint = [&](const std::string& text, const char* colour) {
    return style.colour ? colour + text + kPlain : text;
  };
  std::string text = paint(fitted(scenarioName(result), kWidth), kBold) + "\n";
  if (!result.runs.empty() || !result.summary.empty()) text += "\n" + table(result);

  if (const std::string bandwidths = bandwidthTable(result); !bandwidths.empty()) {
    text += "\n" + bandwidths;
  }
  if (result.training) text += "\n" + trainingText(result);
  if (const std::string latencies = latencyText(result); !latencies.empty()) {
    text += "\n" + latencies;
  }

  const VerdictText verdict = explainVerdict(result);
  const std::string word = upper(nameOf(result.verdict));
  const std::string more = besideHeadline(verdict, result);
  text += "\n" + paint(word, colourOf(result));
  if (!more.empty()) text += "  " + fitted(more, kWidth - word.size() - 2);
  text += "\n";
  for (const std::string& reason : verdict.reasons) text += wrapped(reason);
  if (!result.expectations.empty()) text += "\n";
  for (const Expectation& expectation : result.expectations) {
    const std::string line =
        fmt::format("{}  (found {})", expectation.text, valueText(expectation.value));
    const std::string outcome = expectation.is_void ? paint("VOID ", kYellow)
                                : expectation.pass  ? paint("holds", kGreen)
                                                    : paint("FAILS", kRed);
    text += "  " + outcome + "  " + fitted(line, kWidth - 9) + "\n";
    if (!expectation.pass && !expectation.message.empty())
      text += wrapped("why: " + expectation.message);
  }
  // Not cut: a path must be usable.
  if (!style.report_dir.empty()) {
    text += "\nreport: " + printable(style.report_dir) + "/report.html\n";
  }
  if (result.duration_ms > 0) text += "took " + shortTime(result.duration_ms) + " in all\n";
  // One line, so that it can be taken for the last one of the output.
  return text + "\n" + printable(headline(result)) + "\n";
}

}  // namespace faultline::reports
