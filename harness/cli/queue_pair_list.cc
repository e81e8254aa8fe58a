#include "harness/cli/queue_pair_list.h"

#include <array>

#include "injector/rdma/nldev.h"
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

/// Of the RDMA devices that the kernel has; their addresses it does not tell.
Result<Facts> fromKernel(int pid) {
  ASSIGN_OR_RETURN(netlink::Socket socket, rdma::openSocket());
  ASSIGN_OR_RETURN(const std::vector<rdma::QueuePair> pairs,
                   rdma::queuePairsOf(socket, static_cast<std::uint32_t>(pid)));
  if (pairs.empty()) {
    return errorf(Code::kNotFound, "the kernel knows no queue pair of process {}", pid);
  }
  Facts facts;
  for (const rdma::QueuePair& pair : pairs) {
    facts.push_back({.device = pair.device,
                     .number = pair.number,
                     .peerNumber = pair.remote_number.value_or(0),
                     .peerLid = 0,
                     .peerGid = {},
                     .type = pair.type,
                     .state = pair.state});
  }
  return facts;
}

/// The one that faults need comes last.
constexpr std::array<Source, 2> kSources{
    {{"the kernel (RDMA netlink)", fromKernel}, {"the verbs shim in the process", fromShim}}};

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
