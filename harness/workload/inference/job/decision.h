#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/workload/inference/job/stage.h"

namespace faultline::workload {

/// What the first rank of an instance has decided, as the words that it broadcasts.
struct Decision {
  enum class Kind {
    kIdle,  ///< nothing: everybody is still there
    kStep,  ///< `work`
    kEnd,   ///< the requests of this rate are served
  };
  Kind kind = Kind::kIdle;
  Stage::Work work;
  int accept = kNobody;   ///< the keys and values of this request are received from now on
  int arrived = 0;        ///< so many of those that are received, oldest first, are here
  std::vector<int> ends;  ///< requests that are over with this step
  static constexpr int kNobody = -1;
};

/// Always as many words, with room for `ends` of so many; the last one is a digest of the others.
std::size_t wordsOf(int batch);
std::vector<std::int64_t> encode(const Decision& decision, int batch);
/// Nothing: the words are not what anybody has encoded.
std::optional<Decision> decode(const std::vector<std::int64_t>& words);

}  // namespace faultline::workload
