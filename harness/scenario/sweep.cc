#include "harness/scenario/sweep.h"

#include <array>

namespace faultline::scenario {

using reduction::ReduceOp;
using schedule::Collective;

bool reduces(Collective operation) {
  return operation == Collective::kAllReduce || operation == Collective::kReduceScatter ||
         operation == Collective::kReduce;
}

std::vector<SweepCell> cellsOf(const Sweep& sweep) {
  std::vector<SweepCell> cells;
  for (const Collective operation : sweep.operations) {
    for (const reduction::DataType dtype : sweep.dtypes) {
      for (const ReduceOp op : sweep.ops) {
        if (!reduces(operation) && op != sweep.ops.front()) continue;
        for (const Bytes size : sweep.sizes) {
          const SweepCell cell{operation, size, dtype, op, false};
          if (sweep.place != Place::kIn || schedule::hasOutput(operation)) cells.push_back(cell);
          if (sweep.place == Place::kOut || schedule::hasOutput(operation)) continue;
          cells.push_back(cell);
          cells.back().inPlace = true;
        }
      }
    }
  }
  return cells;
}

std::int64_t countOf(const SweepCell& cell, int ranks) {
  const std::int64_t elements = cell.size / reduction::sizeOf(cell.dtype);
  return hasBlocks(cell.operation) ? elements / ranks : elements;
}

Bytes bytesOf(const SweepCell& cell, int ranks) {
  return countOf(cell, ranks) * (hasBlocks(cell.operation) ? ranks : 1) *
         reduction::sizeOf(cell.dtype);
}

std::vector<Bytes> sizesBetween(Bytes from, Bytes to, std::int64_t factor) {
  std::vector<Bytes> sizes{from};
  while (sizes.back() <= to / factor) sizes.push_back(sizes.back() * factor);
  return sizes;
}

std::span<const std::string_view> operationNames() {
  static const auto kNames = [] {
    std::array<std::string_view, schedule::kAllCollectives.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      names[i] = collectiveName(schedule::kAllCollectives[i]);
    }
    return names;
  }();
  return kNames;
}

}  // namespace faultline::scenario
