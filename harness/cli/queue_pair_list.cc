#include "harness/cli/queue_pair_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "injector/rdma/nldev.h"
#include "injector/verbs/connection.h"

namespace faultline::cli {
namespace {

using Rows = std::vector<QueuePairRow>;

constexpr std::string_view kKernelSource = "the kernel (RDMA netlink)";
constexpr std::string_view kShimSource = "the verbs shim in the process";

Result<Rows> fromShim(int pid) {
  ASSIGN_OR_RETURN(injector::verbs::Connection connection, injector::verbs::Connection::open(pid));
  ASSIGN_OR_RETURN(const auto told, connection.list());
  Rows rows;
  for (const auto& facts : told) {
    rows.push_back({facts.device, facts.number, facts.type, facts.state, facts.peerNumber,
                    facts.peerLid, facts.peerGid, true});
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
    rows.push_back(
        {pair.device, pair.number, pair.type, pair.state, pair.remote_number, {}, {}, false});
  }
  return rows;
}

template <typename T>
void fill(std::optional<T>& value, const std::optional<T>& other) {
  if (!value) value = other;
}

}  // namespace

std::vector<QueuePairRow> merge(std::vector<QueuePairRow> of_kernel,
                                const std::vector<QueuePairRow>& of_shim) {
  Rows rows = std::move(of_kernel);
  for (const QueuePairRow& told : of_shim) {
    const auto row = std::ranges::find_if(rows, [&](const QueuePairRow& one) {
      return one.device == told.device && one.number == told.number;
    });
    if (row == rows.end()) {
      rows.push_back(told);
      continue;
    }
    row->shim = true;
    fill(row->peerNumber, told.peerNumber);
    fill(row->peerLid, told.peerLid);
    fill(row->peerGid, told.peerGid);
  }
  return rows;
}

Result<QueuePairList> listQueuePairs(int pid) {
  auto of_kernel = fromKernel(pid);
  auto of_shim = fromShim(pid);
  if (of_kernel.ok() && of_shim.ok()) {
    return QueuePairList{fmt::format("{} and {}", kKernelSource, kShimSource),
                         merge(*std::move(of_kernel), *of_shim), ""};
  }
  if (of_shim.ok()) return QueuePairList{std::string(kShimSource), *std::move(of_shim), ""};
  if (of_kernel.ok()) {
    return QueuePairList{std::string(kKernelSource), *std::move(of_kernel),
                         of_shim.status().message()};
  }
  return Status(of_shim.status().code(),
                fmt::format("{}: {}; {}: {}", kKernelSource, of_kernel.status().message(),
                            kShimSource, of_shim.status().message()));
}

}  // namespace faultline::cli
