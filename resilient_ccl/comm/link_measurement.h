#pragma once

#include "base/status.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::comm {

class Communicator;

/// Measures what messages cost between the ranks of `comm`, which all call it; all get the same
/// answer. Every rank sends to one and receives from another at the same time, over the network
/// where a rank lies elsewhere. Moves at most 88 MiB per rank each way, less where 8 MiB take
/// longer than 50 ms, and up to 304 beside other programs.
Result<plan::LinkModel> measureLink(Communicator& comm);

}  // namespace faultline::comm
