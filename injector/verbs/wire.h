#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "injector/verbs/message.h"
#include "injector/verbs/rule.h"

/// What the messages between controller and shim carry.
namespace faultline::injector::verbs {

/// The verb of what the shim says unasked, for each fault that is armed when its program ends by
/// exit(): the fault and its counters. Who asks next finds only that it has ended.
inline constexpr std::string_view kLastWord = "last";

/// Adds the fields of a rule; readRule() accepts exactly these, and checks them.
void addRule(Message& message, const Rule& rule);
Result<Rule> readRule(const Message& message);

void addCounters(Message& message, const Counters& counters);
Result<Counters> readCounters(const Message& message);

/// One queue pair as the value of a field "qp".
std::string writeFacts(const QueuePairFacts& facts);
Result<QueuePairFacts> readFacts(std::string_view text);

/// The answer to what could not be done, and back.
Message errorMessage(const Status& status);
Status readError(const Message& message);

/// What the shim says of itself.
struct ShimFacts {
  std::uint64_t pid = 0;
  std::uint64_t contexts = 0;        ///< that it watches
  std::uint64_t missedContexts = 0;  ///< whose operations it could not take over
  std::uint64_t queuePairs = 0;
  std::uint64_t completionQueues = 0;
  std::uint64_t missedQueuePairs = 0;  ///< with extended posting that it could not take over
  std::uint64_t armed = 0;             ///< faults, of all controllers
  bool operator==(const ShimFacts&) const = default;
};
void addShimFacts(Message& message, const ShimFacts& facts);
Result<ShimFacts> readShimFacts(const Message& message);

}  // namespace faultline::injector::verbs
