#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace faultline::faultd {

/// Which of the strikes that were left are to be undone now: each at once, and where that fails
/// again later and later, as a port may be gone for good. Pure.
class LeftSchedule {
 public:
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(1);

  /// Those of `left` (ids) whose turn it is. What is not left any more is forgotten.
  std::vector<std::string> due(const std::vector<std::string>& left, TimePoint now);

 private:
  struct Attempt {
    TimePoint next{};
    Duration pause = kFirstPause;
  };
  std::map<std::string, Attempt> attempts_;
};

}  // namespace faultline::faultd
