#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/reduction/data_type.h"
#include "resilient_ccl/schedule/collective.h"

namespace faultline::comm {

/// What one rank asks for; `Communicator` says what each of them means.
struct CollectiveCall {
  schedule::Collective collective = schedule::Collective::kAllReduce;
  const void* source = nullptr;
  void* target = nullptr;
  std::int64_t count = 0;
  reduction::DataType type = reduction::DataType::kF32;
  reduction::ReduceOp op = reduction::ReduceOp::kSum;
  int root = 0;
};

/// How what the user has, and gets, lies in the buffer of the collective's schedule
/// (`schedule::Collective`).
struct Placement {
  std::int64_t data = 0;    ///< elements of data per rank, as schedules count them
  schedule::Piece given;    ///< elements of the buffer that are the user's source
  schedule::Piece written;  ///< likewise the target
  /// The rank passes on what is not its own result.
  bool needsScratch = false;
};

Placement placementOf(const CollectiveCall& call, int rank, int ranks);

/// Whether there is such an element type; `name` of what is called, for the error.
Status checkType(reduction::DataType type, std::string_view name);

/// Whether the call makes sense on this rank: its type and operation, its count and root, that
/// there is memory where it is needed, and that source and target are apart or in place as the
/// collective has it.
Status checkCall(const CollectiveCall& call, int rank, int ranks);

}  // namespace faultline::comm
