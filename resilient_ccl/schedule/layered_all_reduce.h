#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// A ring over all ranks that have at least a bandwidth, and the part of the buffer it works on.
struct RingLayer {
  std::vector<int> members;   ///< at least 2, in ring order
  std::vector<int> excluded;  ///< the other ranks: too slow for this ring
  Piece part;
  int lanes = 1;  ///< rings of its own at a time, among which its part is split
  int turns = 1;  ///< so often: lane i + `lanes` begins when the ring of lane i is done
};

/// The layers of R2CCL's degraded AllReduce (arXiv 2512.25059, docs/schedules.md) for these
/// bandwidths: ring 0 has all ranks and runs at the rate of the slowest; each further ring leaves
/// out the slowest of the one before and uses what its members have left. The parts are such that
/// all rings take equally long. `allLevels`: a ring for every bandwidth that occurs; otherwise only
/// the ranks with the most bandwidth have a second ring. A ring of less than two ranks, or one
/// whose part would take longer to get to the excluded ranks than it saves (p(1 + 1/k) >= 2(p-1)
/// for k segments), is left out. A layer that leaves one rank out has four turns where the ports of
/// the fastest ranks are busy for at most 85 % of the time of the slowest.
std::vector<RingLayer> ringLayers(int ranks, std::int64_t elements, int segments,
                                  const std::vector<double>& bandwidths, bool allLevels);

/// In how many chunks the part of a layer goes through its excluded ranks, all turns together: as
/// many chunks of the ring, cut into equal parts, as make `segments`, so at least that.
int pipelineChunks(const RingLayer& layer, int segments);

/// AllReduce in layers: all rings at the same time; then, for each layer, the excluded ranks send
/// their contributions to one member, which adds them in a fixed order and sends the result along
/// the ring, whose members pass it on to the excluded ranks, pipelined in at least `segments`
/// chunks. That is the ring's first member, or with several excluded ranks another for each lane.
/// Results are bit-identical.
///
/// Layer i has `lanes` x `turns` lanes, one after the other; each runs its ring and then that
/// pipeline. More lanes get more of ports that are shared fairly: ports serve rings by their
/// bandwidths. With several turns the excluded rank has the pipelines of lanes that are through
/// while the rings of others still run, so that its port never waits.
std::unique_ptr<Schedule> layeredAllReduce(std::string_view algorithm, int ranks,
                                           std::int64_t elements, int segments,
                                           std::vector<RingLayer> layers);

}  // namespace faultline::schedule
