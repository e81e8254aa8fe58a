#pragma once

#include <memory>

#include "resilient_ccl/comm/program.h"

namespace faultline::comm {

/// One rank's part of a message between two: `kind` is kSend to, or kRecv from, `peer`. Executed as
/// a collective of its own, whose number both ends count per pair and direction.
std::shared_ptr<const Program> pointToPoint(schedule::OpKind kind, int ranks, int peer,
                                            std::int64_t count);

/// The number of the index-th message; not one of a collective.
constexpr std::uint64_t pointToPointNumber(std::uint64_t index) {
  constexpr int kBit = 47;  // the highest of a collective's number (Executor: 48 bits)
  return std::uint64_t{1} << kBit | index;
}

}  // namespace faultline::comm
