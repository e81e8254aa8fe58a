#include "resilient_ccl/schedule/algorithms.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "resilient_ccl/schedule/chain.h"
#include "resilient_ccl/schedule/halving_doubling.h"
#include "resilient_ccl/schedule/layered_all_reduce.h"
#include "resilient_ccl/schedule/optcc_all_reduce.h"
#include "resilient_ccl/schedule/optcc_ring.h"
#include "resilient_ccl/schedule/optcc_server.h"
#include "resilient_ccl/schedule/pairwise.h"
#include "resilient_ccl/schedule/relay.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "resilient_ccl/schedule/ring_phases.h"
#include "resilient_ccl/schedule/tree_all_reduce.h"

namespace faultline::schedule {
namespace {

std::unique_ptr<Schedule> layered(std::string_view name, const ScheduleRequest& request,
                                  bool allLevels) {
  return layeredAllReduce(name, request.ranks, request.elements, request.segments,
                          ringLayers(request.ranks, request.elements, request.segments,
                                     request.bandwidths.slower(), allLevels));
}

std::vector<int> order(const ScheduleRequest& request, const std::vector<double>& bandwidths) {
  return chainOrder(request.ranks, request.root, bandwidths);
}

std::unique_ptr<Schedule> optccR2(const ScheduleRequest& r) {
  if (r.ranks < 3) return ringAllReduce(r.ranks, r.elements, r.segments);
  const std::vector<double> slower = r.bandwidths.slower();
  const auto slowest = std::min_element(slower.begin(), slower.end());
  const int straggler = slower.empty() ? 0 : static_cast<int>(slowest - slower.begin());
  return optccRing(r.ranks, r.elements, r.segments, straggler);
}

std::unique_ptr<Schedule> serverOptcc(const ScheduleRequest& r) {
  // A shard of less than an element: the tree is as good as anything.
  if (r.elements < r.ranks) return treeAllReduce(r.ranks, r.elements, r.segments);
  const int nodes = r.ranks / r.ranksPerNode;
  const PortBandwidths ofNodes = nodeBandwidths(r.bandwidths, r.ranksPerNode);
  return optccServer(nodes, r.ranksPerNode, r.elements, r.segments, r.window,
                     ownerShares(nodes, ofNodes, r.shares));
}

/// AllReduce first: `algorithms()` is the beginning of it.
constexpr std::array kAlgorithms{
    Algorithm{
        "ring", "ring AllReduce; each segment is a ring of its own over its part",
        [](const ScheduleRequest& r) { return ringAllReduce(r.ranks, r.elements, r.segments); }},
    Algorithm{
        "tree", "binomial tree to rank 0 and back, for small messages",
        [](const ScheduleRequest& r) { return treeAllReduce(r.ranks, r.elements, r.segments); }},
    Algorithm{"halving_doubling",
              "recursive halving and doubling: as deep as a tree, with the volume of a ring",
              [](const ScheduleRequest& r) {
                return halvingDoublingAllReduce(r.ranks, r.elements, r.segments);
              }},
    Algorithm{"optcc",
              "AllReduce at the lower bound with slow ranks: cyclic shift, owners by share",
              [](const ScheduleRequest& r) {
                return optccAllReduce(r.ranks, r.elements, r.segments, r.window,
                                      ownerShares(r.ranks, r.bandwidths, r.shares));
              },
              Collective::kAllReduce, Senders::kAll},
    Algorithm{"optcc_r2", "optcc with ring traffic only, for one slow rank", optccR2},
    Algorithm{"optcc_server", "optcc among nodes with several ranks each", serverOptcc,
              Collective::kAllReduce, Senders::kAll},
    Algorithm{"r2_allreduce",
              "R2CCL: a ring of all, one of the fast ranks, then a pipeline through the slow ones",
              [](const ScheduleRequest& r) { return layered("r2_allreduce", r, false); },
              Collective::kAllReduce, Senders::kRings},
    Algorithm{"r2_recursive", "r2_allreduce with a ring for every bandwidth that occurs",
              [](const ScheduleRequest& r) { return layered("r2_recursive", r, true); },
              Collective::kAllReduce, Senders::kRings},
    Algorithm{
        "ring_reduce_scatter", "first half of the ring AllReduce",
        [](const ScheduleRequest& r) { return ringReduceScatter(r.ranks, r.elements, r.segments); },
        Collective::kReduceScatter},
    Algorithm{
        "ring_all_gather", "second half of the ring AllReduce",
        [](const ScheduleRequest& r) { return ringAllGather(r.ranks, r.elements, r.segments); },
        Collective::kAllGather},
    Algorithm{"relay_reduce_scatter", "relays add up what slow receivers have no time to receive",
              [](const ScheduleRequest& r) {
                return relayReduceScatter(r.ranks, r.elements, r.segments, r.bandwidths.receive);
              },
              Collective::kReduceScatter},
    Algorithm{"relay_all_gather", "relays pass on what slow senders have no time to send",
              [](const ScheduleRequest& r) {
                return relayAllGather(r.ranks, r.elements, r.segments, r.bandwidths.send);
              },
              Collective::kAllGather},
    Algorithm{"chain_broadcast", "from the root along a chain, slow senders last",
              [](const ScheduleRequest& r) {
                return chainBroadcast(order(r, r.bandwidths.send), r.elements, r.segments);
              },
              Collective::kBroadcast},
    Algorithm{"chain_reduce", "to the root along a chain, slow receivers first",
              [](const ScheduleRequest& r) {
                return chainReduce(order(r, r.bandwidths.receive), r.elements, r.segments);
              },
              Collective::kReduce},
    Algorithm{
        "pairwise_all_to_all", "every block straight to its rank, in macro steps",
        [](const ScheduleRequest& r) { return pairwiseAllToAll(r.ranks, r.elements, r.window); },
        Collective::kAllToAll},
    Algorithm{"ring_send_recv", "every rank sends to the next and receives from the one before",
              [](const ScheduleRequest& r) {
                return ringSendRecv(r.ranks, r.elements, r.segments, r.window);
              },
              Collective::kSendRecv},
};

Status check(const std::vector<double>& bandwidths, int ranks) {
  if (!bandwidths.empty() && bandwidths.size() != static_cast<std::size_t>(ranks)) {
    return errorf(Code::kInvalidArgument, "{} bandwidths given for {} ranks", bandwidths.size(),
                  ranks);
  }
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    if (!(bandwidths[rank] > 0 && bandwidths[rank] <= 1)) {
      return errorf(Code::kInvalidArgument,
                    "bandwidth of rank {} must be above 0 and at most 1, not {}; a rank without "
                    "any path cannot take part",
                    rank, bandwidths[rank]);
    }
  }
  return okStatus();
}

Status check(const ScheduleRequest& request) {
  if (request.ranks < 1) {
    return errorf(Code::kInvalidArgument, "a schedule needs at least 1 rank, not {}",
                  request.ranks);
  }
  if (request.elements < 0) {
    return errorf(Code::kInvalidArgument, "a schedule cannot move {} elements", request.elements);
  }
  if (request.segments < 1) {
    return errorf(Code::kInvalidArgument, "a schedule needs at least 1 segment, not {}",
                  request.segments);
  }
  if (request.ranksPerNode < 1 || request.ranks % request.ranksPerNode != 0) {
    return errorf(Code::kInvalidArgument, "{} ranks cannot be spread over nodes of {}",
                  request.ranks, request.ranksPerNode);
  }
  if (request.root < 0 || request.root >= request.ranks) {
    return errorf(Code::kInvalidArgument, "the root cannot be rank {} of {}", request.root,
                  request.ranks);
  }
  if (request.window < 0) {
    return errorf(Code::kInvalidArgument, "a window cannot have {} receives", request.window);
  }
  RETURN_IF_ERROR(check(request.bandwidths.send, request.ranks));
  return check(request.bandwidths.receive, request.ranks);
}

}  // namespace

std::span<const Algorithm> allAlgorithms() { return kAlgorithms; }

std::span<const Algorithm> algorithms() {
  std::size_t count = 0;
  while (kAlgorithms[count].collective == Collective::kAllReduce) ++count;
  return allAlgorithms().first(count);
}

Senders sendersOf(std::string_view algorithm) {
  const auto found = std::ranges::find(kAlgorithms, algorithm, &Algorithm::name);
  return found == std::end(kAlgorithms) ? Senders::kFew : found->senders;
}

const Algorithm& algorithmOf(Collective collective) {
  return *std::ranges::find(kAlgorithms, collective, &Algorithm::collective);
}

Result<std::unique_ptr<Schedule>> makeSchedule(std::string_view algorithm,
                                               const ScheduleRequest& request) {
  RETURN_IF_ERROR(check(request));
  for (const Algorithm& candidate : kAlgorithms) {
    if (candidate.name == algorithm) return candidate.make(request);
  }
  std::vector<std::string_view> known;
  for (const Algorithm& candidate : kAlgorithms) known.push_back(candidate.name);
  return errorf(Code::kNotFound, "there is no algorithm '{}'{}", algorithm,
                suggestion(algorithm, known));
}

}  // namespace faultline::schedule
