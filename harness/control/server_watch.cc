#include "harness/control/server_watch.h"

#include <algorithm>

namespace faultline::run {

void ServerWatch::started(std::span<const int> firstRanks, TimePoint now) {
  signs_.clear();
  for (const int rank : firstRanks) signs_[rank] = now;
  worked_ = now;
}

void ServerWatch::alive(int rank, TimePoint now, Duration computes) {
  signs_[rank] = now + computes;
  if (computes > Duration::zero() && isLast(rank)) worked_ = std::max(worked_, now + computes);
}

void ServerWatch::stepDone(int rank, TimePoint now) {
  if (isLast(rank)) worked_ = std::max(worked_, now);
}

TimePoint ServerWatch::quietSince() const {
  const auto quietest =
      std::ranges::min_element(signs_, {}, [](const auto& sign) { return sign.second; });
  return quietest == signs_.end() ? worked_ : std::max(quietest->second, worked_);
}

}  // namespace faultline::run
