#include "reports/after_fault_text.h"

#include <fmt/format.h>

#include "reports/headline.h"

namespace faultline::reports {
namespace {

constexpr const char* kDidNotGoOn = "did not go on";

bool endedForGood(const Run& run) {
  return run.status == RunStatus::kFailed ||
         (run.status == RunStatus::kHung && run.restarts.empty());
}

}  // namespace

std::string notBackWords(const BackSpread& back) {
  std::string words;
  if (back.ended > 0) words = fmt::format("{} in {} of {}", kDidNotGoOn, back.ended, back.n);
  const int others = back.never - back.ended;
  if (others <= 0) return words;
  if (!words.empty()) words += ", ";
  // Of several, all were watched for at least the shortest time.
  const std::string within = back.watched_ms ? " within " + shortTime(*back.watched_ms) : "";
  return words + fmt::format("not back{} in {} of {}", within, others, back.n);
}

bool noneWentOn(const Summary& row) {
  return row.back_to_95_pct_ms && row.back_to_95_pct_ms->n > 0 &&
         row.back_to_95_pct_ms->ended == row.back_to_95_pct_ms->n;
}

std::string backWords(const Run& run) {
  if (run.back_to_95_pct_ms) return fmt::format("{:.4g}", *run.back_to_95_pct_ms);
  if (!run.after_fault) return "";
  if (endedForGood(run)) return kDidNotGoOn;
  return "not back within " + shortTime(run.after_fault->watched_ms);
}

}  // namespace faultline::reports
