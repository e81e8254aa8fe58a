#include "harness/faultd/left_schedule.h"

#include <algorithm>

namespace faultline::faultd {

std::vector<std::string> LeftSchedule::due(const std::vector<std::string>& left, TimePoint now) {
  std::erase_if(attempts_, [&](const auto& attempt) {
    return std::ranges::find(left, attempt.first) == left.end();
  });
  std::vector<std::string> turn;
  for (const std::string& id : left) {
    Attempt& attempt = attempts_[id];
    if (now < attempt.next) continue;
    turn.push_back(id);
    attempt.next = now + attempt.pause;
    attempt.pause = std::min(2 * attempt.pause, kLongestPause);
  }
  return turn;
}

}  // namespace faultline::faultd
