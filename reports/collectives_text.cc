#include "reports/collectives_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/renderer.h"
#include "reports/tally.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr double kMicroseconds = 1000;  // of a millisecond

/// As nccl-tests calls them (ncclDataType_t).
std::string typeName(const std::string& dtype) {
  static const std::map<std::string, std::string> kNames{
      {"f16", "half"},  {"bf16", "bfloat16"}, {"f32", "float"}, {"f64", "double"},
      {"i8", "int8"},   {"u8", "uint8"},      {"i32", "int32"}, {"u32", "uint32"},
      {"i64", "int64"}, {"u64", "uint64"}};
  const auto found = kNames.find(dtype);
  return found == kNames.end() ? dtype : found->second;
}

/// Right-justified, with as many digits as fit: a shaped rail carries hundredths of a GB/s, and
/// needs seconds. A blank in front, whatever happens.
std::string number(double value, int width, int most) {
  std::string text;
  for (int digits = most; digits >= 0; --digits) {
    text = fmt::format("{:.{}f}", value, digits);
    if (std::ssize(text) <= width) break;
  }
  return fmt::format(" {:>{}}", text, width);
}

// Of time, algbw, busbw, and the number of wrong elements.
constexpr int kTimeWidth = 9, kBandwidthWidth = 7, kWrongWidth = 6;

std::string half(const CollectiveRow* row) {
  if (row == nullptr) {
    return fmt::format(" {:>{}} {:>{}} {:>{}} {:>{}}", "N/A", kTimeWidth, "N/A", kBandwidthWidth,
                       "N/A", kBandwidthWidth, "N/A", kWrongWidth);
  }
  return number(row->p50_ms * kMicroseconds, kTimeWidth, 2) +
         number(row->algbw, kBandwidthWidth, 4) + number(row->busbw, kBandwidthWidth, 4) +
         fmt::format(" {:>{}}", row->wrong_elements, kWrongWidth);
}

bool hasRoot(const CollectiveRow& row) {
  return row.operation == "broadcast" || row.operation == "reduce";
}

bool sameLine(const CollectiveRow& a, const CollectiveRow& b) {
  return a.operation == b.operation && a.count == b.count && a.dtype == b.dtype && a.op == b.op &&
         a.in_place != b.in_place;
}

std::string tableOf(const Run& run) {
  std::string text;
  std::string operation;
  double sum = 0;
  std::int64_t wrong = 0;
  for (auto row = run.collectives.begin(); row != run.collectives.end(); ++row) {
    if (row->operation != operation) {
      operation = row->operation;
      text += collectivesHead(operation);
    }
    const CollectiveRow* other = row + 1 == run.collectives.end() ? nullptr : &*(row + 1);
    if (other != nullptr && !sameLine(*row, *other)) other = nullptr;
    text += row->in_place ? collectivesLine(other, &*row) : collectivesLine(&*row, other);
    for (const CollectiveRow* one : {static_cast<const CollectiveRow*>(&*row), other}) {
      if (one == nullptr) continue;
      sum += one->busbw;
      wrong += one->wrong_elements;
    }
    if (other != nullptr) ++row;
  }
  return text + collectivesFoot(wrong, sum / static_cast<double>(run.collectives.size()));
}

class CollectivesRenderer final : public Renderer {
 public:
  const char* name() const override { return "nccl-tests"; }
  const char* fileName() const override { return "collectives.txt"; }
  bool applies(const ScenarioResult& result) const override {
    return std::ranges::any_of(result.runs,
                               [](const Run& run) { return !run.collectives.empty(); });
  }
  std::string text(const ScenarioResult& result) const override { return collectivesText(result); }
};

}  // namespace

std::string collectivesHead(std::string_view operation) {
  return fmt::format(
      "#\n# {}\n#{:>78}{:>33}\n#{:>11}{:>14}{:>10}{:>8}{:>8}{}{}\n#{:>11}{:>14}{:>26}{}{}\n",
      operation, "out-of-place", "in-place", "size", "count", "type", "redop", "root",
      "      time   algbw   busbw #wrong", "      time   algbw   busbw #wrong", "(B)", "(elements)",
      "", "      (us)  (GB/s)  (GB/s)       ", "      (us)  (GB/s)  (GB/s)");
}

std::string collectivesLine(const CollectiveRow* outOfPlace, const CollectiveRow* inPlace) {
  const CollectiveRow& row = outOfPlace != nullptr ? *outOfPlace : *inPlace;
  return fmt::format(" {:>11}{:>14}{:>10}{:>8}{:>8}{}{}\n", row.size_bytes, row.count,
                     typeName(row.dtype), row.op.empty() ? "none" : row.op, hasRoot(row) ? 0 : -1,
                     half(outOfPlace), half(inPlace));
}

std::string collectivesFoot(std::int64_t wrong, double meanBusBandwidth) {
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.4f}\n#\n", wrong,
                     wrong == 0 ? "OK" : "FAILED", meanBusBandwidth);
}

std::string collectivesText(const ScenarioResult& result) {
  // In the order of the other tables, and not in that of the runs, which is drawn by lot.
  const std::vector<StrategyTally> tallies = tallyByStrategy(result);
  const auto place = [&](const Run* run) {
    const auto tally = std::ranges::find(tallies, run->strategy, &StrategyTally::strategy);
    return std::pair(run->block, tally - tallies.begin());
  };
  std::vector<const Run*> runs;
  for (const Run& run : result.runs) {
    if (!run.collectives.empty()) runs.push_back(&run);
  }
  std::ranges::stable_sort(runs, {}, place);
  std::string text;
  for (const Run* run : runs) {
    text += fmt::format("# {}: {}, block {}{}\n", cleanText(scenarioName(result)),
                        cleanText(run->strategy), run->block + 1, run->faulted ? ", faulted" : "");
    text += tableOf(*run);
  }
  return text;
}

std::unique_ptr<Renderer> makeCollectivesRenderer() {
  return std::make_unique<CollectivesRenderer>();
}

}  // namespace faultline::reports
