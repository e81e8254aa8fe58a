#include "harness/cli/queue_pair_list.h"

#include <fmt/format.h>

#include <array>

#include "injector/rdma/nldev.h"
#include "injector/verbs/connection.h"

namespace faultline::cli {
namespace {

using Rows = std::vector<QueuePairRow>;

struct Source {
  std::string_view name;
  Result<Rows> (*list)(int pid);
};

Result<Rows> fromShim(int pid) {
  ASSIGN_OR_RETURN(injector::verbs::Connection connection, injector::verbs::Connection::open(pid));
  ASSIGN_OR_RETURN(const auto told, connection.list());
  Rows rows;
  for (const auto& facts : told) {
    rows.push_back({facts.device, facts.number, facts.type, facts.state, facts.peerNumber,
                    facts.peerLid, facts.peerGid});
  }
  return rows;
}

/// Of the RDMA devices that the kernel has; their addresses it does not tell.
Result<Rows> fromKernel(int pid) {
  ASSIGN_OR_RETURN(netlink::Socket socket, rdma::openSocket());
  ASSIGN_OR_RETURN(const std::vector<rdma::QueuePair> pairs,
                   rdma::queuePairsOf(socket, static_cast<std::uint32_t>(pid)));
  if (pairs.empty()) {
    return errorf(Code::kNotFound, "the kernel knows no queue pair of process {}", pid);
  }
  Rows rows;
  for (const rdma::QueuePair& pair : pairs) {
    rows.push_back({pair.device, pair.number, pair.type, pair.state, pair.remote_number, {}, {}});
  }
  return rows;
}

/// The one that faults need comes last.
constexpr std::array<Source, 2> kSources{
    {{"the kernel (RDMA netlink)", fromKernel}, {"the verbs shim in the process", fromShim}}};

}  // namespace

Result<QueuePairList> listQueuePairs(int pid) {
  Status failed = okStatus();
  std::string told;
  for (const Source& source : kSources) {
    auto rows = source.list(pid);
    if (rows.ok()) return QueuePairList{source.name, *std::move(rows)};
    failed = rows.status();
    told += fmt::format("{}{}: {}", told.empty() ? "" : "; ", source.name, failed.message());
  }
  return Status(failed.code(), told);
}

}  // namespace faultline::cli
