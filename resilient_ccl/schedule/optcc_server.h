#pragma once

#include <memory>

#include "resilient_ccl/schedule/schedule.h"
#include "resilient_ccl/schedule/shares.h"

namespace faultline::schedule {

/// AllReduce for nodes with several ranks that share the node's NICs: `optccAllReduce` among nodes
/// (OptCC at server level, arXiv 2606.01680; docs/schedules.md). Rank r is number r mod g of node
/// r / g.
///
/// The buffer has g parts; rank q of every node is at home in part q. Per segment, pipelined: the
/// ranks of a node reduce their parts (lane 0); all ranks of number q run the cyclic shift on part
/// q (lanes 2 and 3); each rank hands every shard of its part to the ranks of its node when it is
/// finished (lane 1). So S crosses a node's NICs as often as with one rank per node, the rest stays
/// inside; which NIC carries what is up to the channel, which stripes over those that live.
///
/// `shares`: one per node. ranksPerNode >= 1, elements >= nodes * ranksPerNode, segments >= 1,
/// window >= 0 (asserted; `makeSchedule` checks user input).
std::unique_ptr<Schedule> optccServer(int nodes, int ranksPerNode, std::int64_t elements,
                                      int segments, int window, const Shares& shares);

}  // namespace faultline::schedule
