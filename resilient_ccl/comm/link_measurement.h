#pragma once

#include "base/status.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::comm {

class Communicator;

/// Measures what messages cost between the ranks of `comm`, which all call it; all get the same
/// answer. Every rank sends to one and receives from another at the same time, over the network
/// where a rank lies elsewhere. Moves at most 18 MiB per rank each way, and takes some 0.1 s; on
/// a network on which 256 KiB take longer than that, as long as those take.
Result<plan::LinkModel> measureLink(Communicator& comm);

}  // namespace faultline::comm
