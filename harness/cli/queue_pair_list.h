#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/verbs/rule.h"

/// Where the queue pairs of a process can be read.
namespace faultline::cli {

struct QueuePairList {
  std::string_view source;  ///< who has told
  std::vector<injector::verbs::QueuePairFacts> queuePairs;
};

/// From the first source that knows the process; the error is that of the last one asked, which is
/// the one that faults need.
Result<QueuePairList> listQueuePairs(int pid);

}  // namespace faultline::cli
