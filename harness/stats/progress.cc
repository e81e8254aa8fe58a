#include "harness/stats/progress.h"

#include <algorithm>

namespace faultline::stats {
namespace {

// A piece without length is done within so short a time: a step would have no slope.
constexpr double kShortest = 1e-6;
// Sums of fractions are a little less than the whole.
constexpr double kRounding = 1e-9;

}  // namespace

Progress::Progress(const std::vector<Piece>& pieces) {
  std::vector<std::pair<double, double>> changes;  // (time, change of the slope there)
  for (const Piece& piece : pieces) {
    const double length = std::max(piece.end - piece.begin, kShortest);
    changes.emplace_back(piece.begin, piece.amount / length);
    changes.emplace_back(piece.begin + length, -piece.amount / length);
  }
  std::ranges::sort(changes);
  double slope = 0;
  double done = 0;
  for (const auto& [time, change] : changes) {
    if (!knots_.empty()) done += slope * (time - knots_.back().first);
    if (knots_.empty() || time > knots_.back().first) knots_.emplace_back(time, done);
    slope += change;
  }
}

double Progress::doneUntil(double at) const {
  const auto after = std::ranges::upper_bound(knots_, at, {}, &std::pair<double, double>::first);
  if (after == knots_.begin()) return 0;
  const auto& before = *std::prev(after);
  if (after == knots_.end()) return before.second;
  const double share = (at - before.first) / (after->first - before.first);
  return before.second + share * (after->second - before.second);
}

std::optional<double> Progress::firstWindow(double from, double until, double length,
                                            double amount) const {
  const double last = until - length;
  if (last < from) return std::nullopt;
  // Between these begins of a window what is done in it is linear.
  std::vector<double> begins{from, last};
  for (const auto& [time, done] : knots_) {
    for (const double begin : {time, time - length}) {
      if (begin > from && begin < last) begins.push_back(begin);
    }
  }
  std::ranges::sort(begins);
  const double enough = amount * (1 - kRounding);
  double previous = from;
  double lessThanEnough = 0;
  for (const double begin : begins) {
    const double done = doneIn(begin, length);
    if (done >= enough) {
      if (begin == previous) return begin;
      const double share = (enough - lessThanEnough) / (done - lessThanEnough);
      return previous + share * (begin - previous);
    }
    previous = begin;
    lessThanEnough = done;
  }
  return std::nullopt;
}

}  // namespace faultline::stats
