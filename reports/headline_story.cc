#include "reports/headline_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

void addRun(Story& story, const Run& run) {
  story.plain = run.arm == Arm::kPlain;
  story.stock = run.options.contains("watchdog") || !run.restarts.empty();
  story.as_it_is = run.faulted && !run.processes.empty() && !run.options.contains("mode");
  story.faulted = story.faulted || (run.faulted && run.arm == Arm::kFaulted);
  JobFate fate = JobFate::kSurvived;
  const bool stopped = run.status == RunStatus::kFailed || run.status == RunStatus::kHung;
  if (!run.restarts.empty()) {
    // A run that hung, was killed and began again has gone on.
    fate = run.status == RunStatus::kFailed ? JobFate::kDied : JobFate::kRestarted;
  } else if (stopped) {
    fate = JobFate::kDied;
  } else if (!run.shrinks.empty()) {
    fate = JobFate::kShrunk;
    const Shrink& last = run.shrinks.back();
    if (story.ranks == 0 || last.ranks < story.ranks) {
      story.ranks = last.ranks;
      story.all_ranks = last.ranks + static_cast<int>(last.missing.size());
    }
  }
  if (fate == JobFate::kDied) {
    ++story.died;
    if (run.status == RunStatus::kHung) ++story.hung;
  }
  story.fate = std::max(story.fate, fate);
  for (const Restart& restart : run.restarts) {
    if (!restart.unscaled_total_ms) continue;
    story.usual_restart_ms =
        std::max(story.usual_restart_ms.value_or(0), *restart.unscaled_total_ms);
  }
}

}  // namespace

std::vector<Story> storiesOf(const ScenarioResult& result) {
  std::vector<Story> stories;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    if (tally.runs == 0) continue;  // modelled
    Story& story = stories.emplace_back();
    story.name = plainLine(tally.strategy);
    story.tally = tally;
    const auto row = std::ranges::find(result.summary, tally.strategy, &Summary::strategy);
    if (row != result.summary.end()) story.row = &*row;
    for (const Run& run : result.runs) {
      if (run.strategy == tally.strategy) addRun(story, run);
    }
  }
  return stories;
}

std::optional<double> overheadOf(const Story& story) {
  if (story.row == nullptr || !story.row->overhead_pct) return std::nullopt;
  const double median = story.row->overhead_pct->median;
  return std::isfinite(median) ? std::optional(median) : std::nullopt;
}

std::optional<KeptBandwidth> keptBandwidth(const std::vector<SweptCall>& calls,
                                           const std::string& strategy) {
  std::optional<KeptBandwidth> kept;
  std::int64_t largest = -1;
  for (const SweptCall& call : calls) {
    for (const StrategyCalls& of : call.strategies) {
      if (of.strategy != strategy || !of.kept || of.mis_measured) continue;
      // Of equally large ones the slowest: nothing here is to flatter.
      const bool larger = call.size_bytes > largest;
      if (!larger && (call.size_bytes < largest || *of.kept >= kept->share)) continue;
      largest = call.size_bytes;
      kept = KeptBandwidth{fmt::format("{} of {}", call.operation, formatSize(call.size_bytes)),
                           *of.kept};
    }
  }
  return kept;
}

std::string plainLine(const std::string& text) {
  std::string line = cleanText(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return line;
}

}  // namespace faultline::reports
