#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "resilient_ccl/reduction/data_type.h"
#include "resilient_ccl/schedule/collective.h"

namespace faultline::scenario {

/// Where a collective finds its input: in a buffer of its own, in that of its result, or one after
/// the other.
enum class Place { kOut, kIn, kBoth };

/// What the workload `collective` calls: every combination of these.
struct Sweep {
  std::vector<schedule::Collective> operations{schedule::Collective::kAllReduce};
  std::vector<Bytes> sizes{1 << 20};  ///< of the larger of input and output of a rank
  std::vector<reduction::DataType> dtypes{reduction::DataType::kF32};
  std::vector<reduction::ReduceOp> ops{reduction::ReduceOp::kSum};
  Place place = Place::kOut;
  /// A cell is called up to so many times more, untold, while its planner tries candidates.
  int settleCalls = 400;
  bool operator==(const Sweep&) const = default;
};

/// Cells of at least so many bytes are large: their time is that of the bytes.
inline constexpr Bytes kLargeCell = 8 << 20;

/// One of them.
struct SweepCell {
  schedule::Collective operation = schedule::Collective::kAllReduce;
  Bytes size = 0;
  reduction::DataType dtype = reduction::DataType::kF32;
  reduction::ReduceOp op = reduction::ReduceOp::kSum;
  bool inPlace = false;
  bool operator==(const SweepCell&) const = default;
};

/// In the order in which they are run: by operation, type, operator, size, place. What reduces
/// nothing has no operator (it stands once, with the first one); what cannot work in place is left
/// out there.
std::vector<SweepCell> cellsOf(const Sweep& sweep);

/// The count with which a cell is called by `ranks` ranks, as nccl-tests does: of one block where
/// the larger side has a block for every rank.
std::int64_t countOf(const SweepCell& cell, int ranks);
/// Bytes of the larger of input and output: the size, without what cannot be divided.
Bytes bytesOf(const SweepCell& cell, int ranks);

bool reduces(schedule::Collective operation);

/// `from`, `from` x factor, ... up to `to`; factor >= 2, 0 < from <= to.
std::vector<Bytes> sizesBetween(Bytes from, Bytes to, std::int64_t factor);

/// By the number of the collective.
std::span<const std::string_view> operationNames();

}  // namespace faultline::scenario
