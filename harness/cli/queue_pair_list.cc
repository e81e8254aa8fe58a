#include "harness/cli/queue_pair_list.h"

#include <array>

#include "injector/verbs/connection.h"

namespace faultline::cli {
namespace {

using Facts = std::vector<injector::verbs::QueuePairFacts>;

struct Source {
  std::string_view name;
  Result<Facts> (*list)(int pid);
};

Result<Facts> fromShim(int pid) {
  ASSIGN_OR_RETURN(injector::verbs::Connection connection, injector::verbs::Connection::open(pid));
  return connection.list();
}

/// The one that faults need comes last.
constexpr std::array<Source, 1> kSources{{{"the verbs shim in the process", fromShim}}};

}  // namespace

Result<QueuePairList> listQueuePairs(int pid) {
  Status last = okStatus();
  for (const Source& source : kSources) {
    auto facts = source.list(pid);
    if (facts.ok()) return QueuePairList{source.name, *std::move(facts)};
    last = facts.status();
  }
  return last;
}

}  // namespace faultline::cli
